import { fail } from '../../../sql/errors.ts'
import type { BodyWriter, NativeResponse } from '../types.ts'

interface Unsent {
  readonly bytes: Uint8Array
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** Writes a response body of known length piece by piece, at the client's pace. */
export class SizedBodyWriter implements BodyWriter {
  /** True once the response has ended or the client has disconnected. */
  closed: boolean
  private readonly res: NativeResponse
  private readonly totalBytes: number
  /** Status and headers; undefined once they are written. */
  private head: string | undefined
  private sentBytes = 0
  /** The part of the current piece that the kernel has not accepted; undefined if none. */
  private unsent: Unsent | undefined = undefined

  constructor(res: NativeResponse, head: string, totalBytes: number, open: boolean) {
    this.res = res
    this.head = head
    this.totalBytes = totalBytes
    this.closed = !open || totalBytes === 0
    // Must precede the first write that can return false. uWS keeps only one listener.
    if (!this.closed) res.onWritable(() => this.drain())
  }

  /** Bytes that the kernel has accepted. */
  get bytes(): number {
    return this.sentBytes
  }

  write(chunk: Uint8Array): Promise<void> {
    if (this.closed) return Promise.reject(fail('request.incomplete'))
    if (this.unsent !== undefined)
      return Promise.reject(new Error('write() was called before the previous write finished'))
    if (this.sentBytes + chunk.length > this.totalBytes) {
      return Promise.reject(new Error(`The body exceeds its Content-Length of ${this.totalBytes} bytes`))
    }
    if (chunk.length === 0) return Promise.resolve()
    const bytes = this.tryWrite(chunk)
    if (bytes === undefined) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.unsent = { bytes, resolve, reject }
    })
  }

  abort(): void {
    if (!this.closed) this.res.close()
  }

  /** Handles a disconnect, after which `res` must not be used. */
  handleAbort(): void {
    this.closed = true
    const { unsent } = this
    this.unsent = undefined
    unsent?.reject(fail('request.incomplete'))
  }

  /** Passes bytes to uWS. Returns the unsent bytes; undefined if uWS accepts the next piece. */
  private tryWrite(bytes: Uint8Array): Uint8Array | undefined {
    let sent = false
    let ended = false
    this.res.cork(() => {
      if (this.head !== undefined) this.res.writeStatus(this.head)
      this.head = undefined
      // An empty array would end the response in newer versions of uWS.
      if (bytes.length > 0) [sent, ended] = this.res.tryEnd(bytes, this.totalBytes)
      else sent = true
      if (ended) this.closed = true
    })
    if (ended) {
      this.sentBytes = this.totalBytes
      return undefined
    }
    const offset = this.res.getWriteOffset()
    const left = bytes.subarray(offset - this.sentBytes)
    this.sentBytes = offset
    return sent ? undefined : left
  }

  private drain(): boolean {
    const { unsent } = this
    if (this.closed || unsent === undefined) return true
    const bytes = this.tryWrite(unsent.bytes)
    if (bytes !== undefined) {
      this.unsent = { ...unsent, bytes }
      return false
    }
    this.unsent = undefined
    unsent.resolve()
    return true
  }
}
