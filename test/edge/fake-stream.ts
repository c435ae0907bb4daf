import type { SseFrame, SseStream } from '../../edge/streams/sse.ts'

/** A stream whose subscriber reads at the pace that the test sets. */
export class FakeStream implements SseStream {
  readonly sent: SseFrame[][] = []
  writable = true
  closed = false
  /** Number of writes until the subscriber becomes slow. */
  room = Number.POSITIVE_INFINITY
  private listener = (): void => {}

  send(frames: readonly SseFrame[]): boolean {
    this.sent.push([...frames])
    if (--this.room < 0) this.writable = false
    return this.writable
  }
  onWritable(listener: () => void): void {
    this.listener = listener
  }
  end(frames: readonly SseFrame[] = []): void {
    this.sent.push([...frames])
    this.closed = true
  }
  catchUp(): void {
    this.room = Number.POSITIVE_INFINITY
    this.writable = true
    this.listener()
  }
}
