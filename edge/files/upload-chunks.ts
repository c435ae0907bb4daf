/** Queue of file bytes between the splitter and its only reader. */
export class FileChunks implements AsyncIterable<Uint8Array> {
  private queue: Uint8Array[] = []
  private state: 'open' | 'ended' | 'stopped' = 'open'
  private failure: { readonly error: unknown } | undefined = undefined
  private wakeListener: (() => void) | undefined = undefined
  private drainListener: (() => void) | undefined = undefined

  /** True if chunks are queued or the reader is processing one. */
  get isBusy(): boolean {
    return this.queue.length > 0 || (this.state === 'open' && this.wakeListener === undefined)
  }

  /** True if more chunks may follow. */
  get isOpen(): boolean {
    return this.state === 'open'
  }

  /** Calls the listener once, when the queue is empty and the reader requests more, or when the reader stops. */
  onDrained(listener: () => void): void {
    this.drainListener = listener
  }

  push(chunk: Uint8Array): void {
    if (this.state !== 'open') return
    this.queue.push(chunk)
    this.wakeReader()
  }

  end(): void {
    if (this.state === 'open') this.state = 'ended'
    this.wakeReader()
  }

  fail(error: unknown): void {
    this.failure ??= { error }
    this.wakeReader()
  }

  /** Stops the reader and drops the remaining chunks, so that the parts after the file can be read. */
  stop(): void {
    this.state = 'stopped'
    this.queue = []
    this.notifyDrained()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.failure !== undefined) throw this.failure.error
      const chunk = this.queue.shift()
      if (chunk !== undefined) yield chunk
      else if (this.state !== 'open') return
      else await this.waitForMore()
    }
  }

  private waitForMore(): Promise<void> {
    return new Promise((resolve) => {
      this.wakeListener = resolve
      this.notifyDrained()
    })
  }

  private wakeReader(): void {
    const { wakeListener } = this
    this.wakeListener = undefined
    wakeListener?.()
  }

  private notifyDrained(): void {
    const { drainListener } = this
    this.drainListener = undefined
    drainListener?.()
  }
}
