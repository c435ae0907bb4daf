import * as uWS from 'uWebSockets.js'
import { StartError } from '../../sql/server/start-error.ts'
import { Body } from './bodies/body.ts'
import { UwsExchange } from './exchange.ts'
import { Heads } from './head.ts'
import { Request } from './request.ts'
import type { EdgeServer, Handler, Headers, NativeRequest, NativeResponse, ServerState } from './types.ts'

export { HeaderBlock } from './head.ts'
export { formatAddress } from './request.ts'
export { HEADERS, type LowerCaseHeaderName } from './request-headers.ts'
export type {
  BodyWriter,
  ChunkWriter,
  EdgeRequest,
  EdgeServer,
  EventSink,
  Handler,
  Headers,
  Reply,
  ReplyHead,
  RequestBody,
  Responder,
} from './types.ts'

// Each method is registered separately, so that its name is a constant. any() handles unknown methods, because uWS
// would answer them with its own page.
const METHODS = ['get', 'head', 'options', 'post', 'put', 'patch', 'del', 'any'] as const
const METHOD_NAMES: Readonly<Record<string, string>> = { del: 'DELETE', any: '' }

// LIBUS_LISTEN_DEFAULT sets SO_REUSEPORT, so that every process with this option can share the port.
const SHARED_PORT = 0
const EXCLUSIVE_PORT = 1

export interface ServerOptions {
  readonly onError: (error: unknown) => void
  /** Headers of every response. */
  readonly headers?: Headers
}

// Removes the header `uWebSockets: 20`. The type definitions lack this function.
const uwsCore = uWS as typeof uWS & { _cfg(key: 'silent'): void }
uwsCore._cfg('silent')

/**
 * Creates an HTTP server that hides uWebSockets.js behind plain requests and responders. Exceptions of a handler go to
 * `onError`; the client gets a 500 unless a response has already begun.
 */
export function createServer(handler: Handler, options: ServerOptions): EdgeServer {
  const shared = createState(options)
  const app = uWS.App()
  for (const method of METHODS) {
    const name = METHOD_NAMES[method] ?? method.toUpperCase()
    app[method]('/*', (res, req) => serveRequest(handler, shared, name, res as NativeResponse, req))
  }
  let onDeserted: (() => void) | undefined
  const countConnection = (_: unknown, change: number): void => {
    shared.connections += change
    if (shared.connections === 0) onDeserted?.()
  }
  app.filter(countConnection)
  let listening: uWS.us_listen_socket | undefined
  const stopListening = () => {
    if (listening !== undefined) uWS.us_listen_socket_close(listening)
    listening = undefined
  }
  return {
    async listen(target) {
      listening = await bind(app, target)
      return { port: uWS.us_socket_local_port(listening as uWS.us_socket) }
    },
    async drain() {
      shared.isDraining = true
      const heldRequests: (() => void)[] = []
      shared.heldRequests = heldRequests
      await waitForQuietTurn()
      stopListening()
      shared.heldRequests = undefined
      for (const run of heldRequests) run()
    },
    async whenDisconnected() {
      if (shared.connections > 0) await new Promise<void>((resolve) => (onDeserted = resolve))
    },
    async whenAllSent() {
      if (shared.unsentResponses > 0) await new Promise<void>((resolve) => (shared.onAllSent = resolve))
    },
    close() {
      stopListening()
      app.close()
    },
    get openStreams() {
      return shared.openStreams
    },
  }
}

function createState({ onError, headers = [] }: ServerOptions): ServerState {
  return {
    heads: new Heads(headers),
    openStreams: 0,
    connections: 0,
    unsentResponses: 0,
    onAllSent: undefined,
    bodilessCount: 0,
    isDraining: false,
    heldRequests: undefined,
    // An exception that reaches uWS ends the process, so a failing logger must not throw.
    onError: (error) => {
      try {
        onError(error)
      } catch {}
    },
  }
}

// An event loop turn shorter than this has only accepted connections.
const QUIET_TURN_MS = 0.2
// Maximum number of turns to wait for a quiet one.
const MAX_TURNS = 20

/**
 * Resolves right after the event loop has accepted all connections that the kernel had queued. The kernel resets
 * connections that arrive between that point and the closing of the listening socket. On Linux that also holds if
 * another process shares the port, unless net.ipv4.tcp_migrate_req is set. A short turn keeps this gap small, so the
 * server holds requests until one occurs.
 */
async function waitForQuietTurn(): Promise<void> {
  // The current turn is partial: only a full turn polls all sockets.
  await waitForNextTurn()
  for (let turns = 0, tookMs = QUIET_TURN_MS; turns < MAX_TURNS && tookMs >= QUIET_TURN_MS; turns++) {
    const startedAt = performance.now()
    await waitForNextTurn()
    tookMs = performance.now() - startedAt
  }
}

function waitForNextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Handles one request. It must not throw: an exception that reaches uWS ends the process. */
function serveRequest(
  handler: Handler,
  shared: ServerState,
  name: string,
  res: NativeResponse,
  req: NativeRequest,
): void {
  const exchange = new UwsExchange(res, shared)
  try {
    const method = name === '' ? req.getCaseSensitiveMethod().toUpperCase() : name
    const request = new Request(method, res, req, exchange)
    exchange.isMisframed = request.isMisframed
    // The end of a misframed body is ambiguous, so its bytes are not read.
    if (!request.isMisframed) attachBody(request, exchange, res)
    if (shared.heldRequests === undefined) runHandler(handler, request, exchange)
    else shared.heldRequests.push(() => runHandler(handler, request, exchange))
  } catch (error) {
    exchange.handleError(error)
  }
  exchange.isCorked = false
}

function runHandler(handler: Handler, request: Request, exchange: UwsExchange): void {
  try {
    const result = handler(request, exchange)
    if (result !== undefined) result.then(undefined, (error: unknown) => exchange.handleError(error))
  } catch (error) {
    exchange.handleError(error)
  }
}

/** Must run before the handler: uWS discards data that arrives before onData is registered. */
function attachBody(request: Request, exchange: UwsExchange, res: NativeResponse): void {
  const length = request.header('content-length')
  const chunked = request.header('transfer-encoding') !== ''
  if (!chunked && (length === '' || length === '0')) return
  exchange.incoming = new Body(res, chunked ? -1 : Number(length))
  request.body = exchange.incoming
}

/** Returns an error that explains why listening failed, because uWS gives no reason. */
async function explainListenFailure(host: string, port: number): Promise<StartError> {
  const { findPortProblem } = await import('../../tasks/platform/port.ts')
  const problem = await findPortProblem(host, port)
  return new StartError(problem ?? `Port ${port} on ${host} was in use but is free now; restart the process`)
}

function bind(app: uWS.TemplatedApp, target: { host: string; port: number; exclusive: boolean }) {
  const { host, port, exclusive } = target
  // uWS does not validate the port.
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new RangeError(`Invalid port: ${port}`)
  return new Promise<uWS.us_listen_socket>((resolve, reject) => {
    const onListen = (socket: uWS.us_listen_socket | false) => {
      if (socket !== false) return resolve(socket)
      explainListenFailure(host, port).then(reject, reject)
    }
    // uWS supports this signature, but its type definitions lack it.
    const listen = app.listen as unknown as (
      host: string,
      port: number,
      options: number,
      bound: (socket: uWS.us_listen_socket | false) => void,
    ) => void
    listen.call(app, host, port, exclusive ? EXCLUSIVE_PORT : SHARED_PORT, onListen)
  })
}
