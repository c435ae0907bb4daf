/** The bytes of the file between the splitter and its only reader. */
export class FileChunks implements AsyncIterable<Uint8Array> {
  private queue: Uint8Array[] = []
  private state: 'open' | 'ended' | 'stopped' = 'open'
  private failure: { readonly error: unknown } | undefined = undefined
  private wake: (() => void) | undefined = undefined
  private taken: (() => void) | undefined = undefined

  /** Chunks are waiting for the reader, or it is working on one. */
  get isBusy(): boolean {
    return this.queue.length > 0 || (this.state === 'open' && this.wake === undefined)
  }

  /** More may come. */
  get isOpen(): boolean {
    return this.state === 'open'
  }

  /** Called once, when the reader asks for more than there is, or has stopped. */
  onTaken(listener: () => void): void {
    this.taken = listener
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

  /** The reader wants no more: the rest is dropped, so that the parts after the file are read. */
  stop(): void {
    this.state = 'stopped'
    this.queue = []
    this.tellTaken()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.failure !== undefined) throw this.failure.error
      const chunk = this.queue.shift()
      if (chunk !== undefined) yield chunk
      else if (this.state !== 'open') return
      else await this.more()
    }
  }

  private more(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve
      this.tellTaken()
    })
  }

  private wakeReader(): void {
    const { wake } = this
    this.wake = undefined
    wake?.()
  }

  private tellTaken(): void {
    const { taken } = this
    this.taken = undefined
    taken?.()
  }
}
