import type { LowerCaseHeaderName } from './names.ts'

export interface EdgeRequest {
  /** Upper case. */
  readonly method: string
  /** As sent: without the query, not decoded. */
  readonly path: string
  /** As sent, without '?'; '' when there is none. */
  readonly query: string
  /** '' when absent. The first one counts when a client sends a header twice. */
  header(name: LowerCaseHeaderName): string
  /**
   * Dotted IPv4, compressed IPv6, v4-mapped as v4. The first read makes a system call, so read it only where it is
   * needed; it is '' when that first read comes after the response or after the client left.
   */
  readonly address: string
  readonly body: RequestBody
  /** Its headers disagree about its end or its host; it has no body, and is the last of its connection. */
  readonly misframed?: boolean
}

/** What the client sent. Read at most once, by one of the two methods. */
export interface RequestBody {
  /** @throws fail('request.too_large') over `max`, fail('request.incomplete') when the client left. */
  bytes(max: number): Promise<Uint8Array>
  /**
   * Feeds owned copies to the sink in order and waits for its promises; the client is slowed down meanwhile.
   * Resolves with the byte count. @throws as bytes(), and whatever the sink throws.
   */
  stream(sink: (chunk: Uint8Array) => void | Promise<void>, max: number): Promise<number>
}

export type Headers = readonly (readonly [string, string])[]

export interface ReplyHead {
  readonly status: number
  /** Constant headers, checked and formatted once; they precede `headers`. */
  readonly block?: { readonly text: string }
  readonly headers: Headers
}

export interface Reply extends ReplyHead {
  readonly body?: string | Uint8Array
  /** Sends headers with the body's length, but no body. */
  readonly head?: boolean
}

export interface Responder {
  /** True once a response or stream has begun, or the client is gone. */
  readonly done: boolean
  /** Bytes of the response body so far. */
  readonly bytes: number
  /** Called when the client leaves before the response or stream has ended. Several listeners are possible. */
  onClose(listener: () => void): void
  /** Sends the whole response in one corked write. Does nothing when done. @throws on control characters in headers. */
  send(reply: Reply): void
  /** Begins a body in pieces whose total length is known. */
  body(head: ReplyHead, totalBytes: number): BodyWriter
  /** Begins a body in pieces of unknown total length, in chunked encoding. */
  chunks(head: ReplyHead): ChunkWriter
  /** Opens an event stream: headers and `first` (a comment by default) are sent, the response stays open. */
  events(head: ReplyHead, first?: Uint8Array | string): EventSink
}

export interface BodyWriter {
  /** One call at a time. Resolves when it can take more. @throws fail('request.incomplete') when the client left. */
  write(chunk: Uint8Array): Promise<void>
  /** Cuts the connection, so that the client sees that the body is incomplete. Does nothing after the last byte. */
  abort(): void
}

export interface ChunkWriter {
  /** One call at a time. Resolves when it can take more. @throws fail('request.incomplete') when the client left. */
  write(chunk: Uint8Array): Promise<void>
  end(): void
  /** Cuts the connection, so that the client sees that the body is incomplete. Does nothing after the end. */
  abort(): void
}

export interface EventSink {
  /**
   * One corked write of whole events (the sink puts comments between writes). False when the client is slow:
   * keep the latest state and wait for onWritable. After close it returns false and does nothing.
   */
  write(data: Uint8Array | string): boolean
  /** False from a refused write until the kernel has everything that was buffered. */
  readonly writable: boolean
  /** One listener, the owner's; a later call replaces it. */
  onWritable(listener: () => void): void
  /** The client is gone; not called after end(). Several listeners are possible. */
  onClose(listener: () => void): void
  end(last?: Uint8Array | string): void
  readonly closed: boolean
  /** Bytes written since the client became slow: an upper bound of what is buffered in this process. */
  readonly buffered: number
}

export type Handler = (request: EdgeRequest, responder: Responder) => void | Promise<void>

export interface EdgeServer {
  /** @throws when the port is not available; `exclusive` refuses to share it with another process. */
  listen(options: { host: string; port: number; exclusive: boolean }): Promise<{ port: number }>
  /**
   * Accepts the connections that are already waiting, refuses new ones, and makes every response its connection's last
   * (`Connection: close`), so that clients move elsewhere without losing anything.
   */
  leave(): Promise<void>
  /** Resolves when no connection is open. */
  deserted(): Promise<void>
  /** Resolves when no answer is held for a client that has not taken all of it. */
  taken(): Promise<void>
  /** Cuts every connection. */
  close(): void
  /** Event streams now open. */
  readonly openStreams: number
}

/** What all requests of one server share. */
export interface Shared {
  readonly heads: { text(head: ReplyHead): string }
  readonly onError: (error: unknown) => void
  openStreams: number
  connections: number
  /** Answers of which the kernel has not taken all, and what to call when there are none left. */
  untaken: number
  whenTaken: (() => void) | undefined
  /** Responses without a body so far. */
  bodiless: number
  /** Every response is its connection's last. */
  leaving: boolean
  /** Requests held back while the listening socket closes. */
  held: (() => void)[] | undefined
}

/** The part of uWS.HttpResponse in use. It throws after the response and after an abort: every caller checks first. */
export interface NativeResponse {
  onAborted(handler: () => void): unknown
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): unknown
  onWritable(handler: (offset: number) => boolean): unknown
  cork(write: () => void): unknown
  writeStatus(status: string | Uint8Array): unknown
  writeHeader(name: string, value: string): unknown
  write(chunk: string | Uint8Array): boolean
  end(body?: string | Uint8Array, closeConnection?: boolean): unknown
  endWithoutBody(): unknown
  tryEnd(chunk: string | Uint8Array, totalBytes: number): [boolean, boolean]
  getWriteOffset(): number
  getRemoteAddress(): ArrayBuffer
  pause(): unknown
  resume(): unknown
  close(): unknown
}

/** The part of uWS.HttpRequest in use. It throws once the handler has returned. */
export interface NativeRequest {
  getUrl(): string
  getQuery(): string | undefined
  getCaseSensitiveMethod(): string
  forEach(visit: (name: string, value: string) => void): void
}
