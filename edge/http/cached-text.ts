import { chooseEncoding, compress, type Header } from './reply.ts'
import type { EdgeRequest, ReplyHead, Responder } from './server.ts'

type HeadOf = (status: number, headers: readonly Header[]) => ReplyHead

/** A text to send many times. It is encoded once and compressed once per content coding. */
export class CachedText {
  private readonly contentType: string
  private readonly bytes: Buffer
  private readonly encodings = new Map<'br' | 'gzip', Promise<Buffer>>()

  constructor(text: string, contentType: string) {
    this.bytes = Buffer.from(text)
    this.contentType = contentType
  }

  async send(request: EdgeRequest, responder: Responder, head: HeadOf): Promise<undefined> {
    const encoding = chooseEncoding(request.header('accept-encoding'))
    const headers: Header[] = [
      ['content-type', this.contentType],
      ['vary', 'accept-encoding'],
    ]
    if (encoding !== null) headers.push(['content-encoding', encoding])
    // Without an await, requests that arrive in one socket read get their responses in the same turn.
    const body = encoding === null ? this.bytes : await this.compress(encoding)
    responder.send({ ...head(200, headers), body, isHead: request.method === 'HEAD' })
  }

  private compress(encoding: 'br' | 'gzip'): Promise<Buffer> {
    let bytes = this.encodings.get(encoding)
    if (bytes === undefined) {
      bytes = compress(encoding, this.bytes)
      this.encodings.set(encoding, bytes)
    }
    return bytes
  }
}
