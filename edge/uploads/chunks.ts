/** The bytes of the file between the splitter and the one reader. */
export class FileChunks implements AsyncIterable<Uint8Array> {
  private queue: Uint8Array[] = []
  private state: 'open' | 'ended' | 'stopped' = 'open'
  private failure: { readonly error: unknown } | undefined = undefined
  private wake: (() => void) | undefined = undefined
  private taken: (() => void) | undefined = undefined

  /** Chunks wait for the reader. */
  get isWaiting(): boolean {
    return this.queue.length > 0
  }

  /** Called once, when the reader asks for more than there is or has stopped. */
  onTaken(listener: () => void): void {
    this.taken = listener
  }

  push(chunk: Uint8Array): void {
    if (this.state !== 'open') return
    this.queue.push(chunk)
    this.wake?.()
  }

  end(): void {
    if (this.state === 'open') this.state = 'ended'
    this.wake?.()
  }

  fail(error: unknown): void {
    this.failure ??= { error }
    this.wake?.()
  }

  /** The reader wants no more: the rest is dropped, so that the parts behind the file are read. */
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

  private tellTaken(): void {
    const { taken } = this
    this.taken = undefined
    taken?.()
  }
}
