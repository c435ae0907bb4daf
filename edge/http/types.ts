import type { LowerCaseHeaderName } from './request-headers.ts'

export interface EdgeRequest {
  /** Method in upper case. */
  readonly method: string
  /** Path as sent, without decoding and without the query. */
  readonly path: string
  /** Query as sent, without '?'; '' if there is none. */
  readonly query: string
  /** Returns the header's value; '' if absent. If a client sends a header twice, the first value counts. */
  header(name: LowerCaseHeaderName): string
  /**
   * IP address of the peer: IPv4 dotted, IPv6 compressed, IPv4-mapped as IPv4. The first read makes a system call, so
   * read it only if needed. It is '' if the first read comes after the response or a disconnect.
   */
  readonly address: string
  readonly body: RequestBody
  /**
   * True if the headers contradict each other about the end or the host of the request. Such a request has no body and
   * ends its connection.
   */
  readonly isMisframed?: boolean
}

/** The body that the client sent. Read it at most once, with one of the two methods. */
export interface RequestBody {
  /**
   * Reads the whole body.
   * @throws fail('request.too_large') above `max` bytes, fail('request.incomplete') if the client disconnects.
   */
  readBytes(max: number): Promise<Uint8Array>
  /**
   * Passes the chunks in order to the sink, which then owns them. Waits for the sink's promises, which slows the
   * client. Resolves with the byte count.
   * @throws the errors of `readBytes` and of the sink.
   */
  streamTo(sink: (chunk: Uint8Array) => void | Promise<void>, max: number): Promise<number>
}

export type Headers = readonly (readonly [string, string])[]

export interface ReplyHead {
  readonly status: number
  /** Constant headers that are validated and formatted once. They precede `headers`. */
  readonly block?: { readonly text: string }
  readonly headers: Headers
}

export interface Reply extends ReplyHead {
  readonly body?: string | Uint8Array
  /** True for a response to HEAD: it has the body's Content-Length but no body. */
  readonly isHead?: boolean
}

export interface Responder {
  /** True once a response or stream has begun or the client has disconnected. */
  readonly isDone: boolean
  /** Bytes of the response body written so far. */
  readonly sentBytes: number
  /** Adds a listener that runs if the client disconnects before the response or stream has ended. */
  onClose(listener: () => void): void
  /** Sends the whole response in one corked write. No-op if done. @throws on control characters in headers. */
  send(reply: Reply): void
  /** Begins a response body of known length, which the writer sends in pieces. */
  beginBody(head: ReplyHead, totalBytes: number): BodyWriter
  /** Begins a response body of unknown length, which the writer sends in pieces with chunked encoding. */
  beginChunks(head: ReplyHead): ChunkWriter
  /** Opens an event stream: sends headers and `first` (by default a comment), and keeps the response open. */
  openEvents(head: ReplyHead, first?: Uint8Array | string): EventSink
}

export interface BodyWriter {
  /**
   * Writes a chunk, one call at a time. Resolves once the writer accepts the next one.
   * @throws fail('request.incomplete') after a disconnect.
   */
  write(chunk: Uint8Array): Promise<void>
  /** Closes the connection, so that the client detects the incomplete body. No-op after the last byte. */
  abort(): void
}

export interface ChunkWriter {
  /**
   * Writes a chunk, one call at a time. Resolves once the writer accepts the next one.
   * @throws fail('request.incomplete') after a disconnect.
   */
  write(chunk: Uint8Array): Promise<void>
  end(): void
  /** Closes the connection, so that the client detects the incomplete body. No-op after end(). */
  abort(): void
}

export interface EventSink {
  /**
   * Writes whole events in one corked write; the sink inserts comments between writes. Returns false if the client is
   * slow. The caller must then keep only the latest state and wait for onWritable. After a disconnect or end(), it
   * returns false and does nothing.
   */
  write(data: Uint8Array | string): boolean
  /** False after a write() has returned false, until the kernel has accepted all buffered bytes. */
  readonly isWritable: boolean
  /** Sets the only listener; a later call replaces it. */
  onWritable(listener: () => void): void
  /** Adds a listener for a disconnect; it does not run after end(). */
  onClose(listener: () => void): void
  end(last?: Uint8Array | string): void
  readonly closed: boolean
  /** Bytes written since the client became slow: an upper bound of the bytes buffered in this process. */
  readonly bufferedBytes: number
}

export type Handler = (request: EdgeRequest, responder: Responder) => void | Promise<void>

export interface EdgeServer {
  /** Starts to listen. With `exclusive`, other processes cannot share the port. @throws if the port is unavailable. */
  listen(options: { host: string; port: number; exclusive: boolean }): Promise<{ port: number }>
  /**
   * Drains the server: accepts the connections that already wait, then stops listening. Every response becomes its
   * connection's last (`Connection: close`), so that clients reconnect elsewhere without losing requests.
   */
  drain(): Promise<void>
  /** Resolves once no connection is open. */
  whenDisconnected(): Promise<void>
  /** Resolves once the kernel has accepted all held responses. */
  whenAllSent(): Promise<void>
  /** Closes the listening socket and every connection. */
  close(): void
  /** Number of open event streams. */
  readonly openStreams: number
}

/** State that all requests of one server share. */
export interface ServerState {
  readonly heads: { text(head: ReplyHead): string }
  readonly onError: (error: unknown) => void
  openStreams: number
  connections: number
  /** Number of responses that the kernel has not fully accepted. */
  unsentResponses: number
  /** Called when `unsentResponses` becomes 0; undefined if no caller waits. */
  onAllSent: (() => void) | undefined
  /** Number of responses sent without a body. */
  bodilessCount: number
  /** True if every response must be the last on its connection. */
  isDraining: boolean
  /** Requests held while the listening socket closes; undefined otherwise. */
  heldRequests: (() => void)[] | undefined
}

/**
 * The methods of uWS.HttpResponse that this server uses. They throw after the response and after an abort, so callers
 * must check the exchange's state first.
 */
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

/** The methods of uWS.HttpRequest that this server uses. They throw once the handler has returned. */
export interface NativeRequest {
  getUrl(): string
  getQuery(): string | undefined
  getCaseSensitiveMethod(): string
  forEach(visit: (name: string, value: string) => void): void
}
