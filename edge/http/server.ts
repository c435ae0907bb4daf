import * as uWS from 'uWebSockets.js'
import { StartError } from '../../sql/start-error.ts'
import { Body } from './body.ts'
import { UwsExchange } from './exchange.ts'
import { Heads } from './head.ts'
import { Request } from './request.ts'
import type { EdgeServer, Handler, Headers, NativeRequest, NativeResponse, Shared } from './types.ts'

export { HeaderBlock } from './head.ts'
export { HEADERS, type LowerCaseHeaderName } from './names.ts'
export { addressText } from './request.ts'
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

// Registering each method makes its name a constant; any() covers the rest, since uWS would answer unknown methods with
// a page of its own.
const METHODS = ['get', 'head', 'options', 'post', 'put', 'patch', 'del', 'any'] as const
const NAMES: Readonly<Record<string, string>> = { del: 'DELETE', any: '' }

// LIBUS_LISTEN_DEFAULT shares the port with every process that uses the same option (SO_REUSEPORT).
const SHARED_PORT = 0
const EXCLUSIVE = 1

export interface ServerOptions {
  readonly onError: (error: unknown) => void
  /** Headers of every response. */
  readonly headers?: Headers
}

// Leaves out the header `uWebSockets: 20`. Its types do not know it.
const core = uWS as typeof uWS & { _cfg(key: 'silent'): void }
core._cfg('silent')

/**
 * An HTTP server that turns uWebSockets.js into plain requests and responders; no uWS value is visible above it. What a
 * handler throws goes to `onError`, and the client gets a 500 unless a response has already begun.
 */
export function createServer(handler: Handler, options: ServerOptions): EdgeServer {
  const shared = sharedOf(options)
  const app = uWS.App()
  for (const method of METHODS) {
    const name = NAMES[method] ?? method.toUpperCase()
    app[method]('/*', (res, req) => serve(handler, shared, name, res as NativeResponse, req))
  }
  let deserted: (() => void) | undefined
  const counted = (_: unknown, change: number): void => {
    shared.connections += change
    if (shared.connections === 0) deserted?.()
  }
  app.filter(counted)
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
    async leave() {
      shared.leaving = true
      const held: (() => void)[] = []
      shared.held = held
      await quietTurn()
      stopListening()
      shared.held = undefined
      for (const handle of held) handle()
    },
    async deserted() {
      if (shared.connections > 0) await new Promise<void>((resolve) => (deserted = resolve))
    },
    async taken() {
      if (shared.untaken > 0) await new Promise<void>((resolve) => (shared.whenTaken = resolve))
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

function sharedOf({ onError, headers = [] }: ServerOptions): Shared {
  return {
    heads: new Heads(headers),
    openStreams: 0,
    connections: 0,
    untaken: 0,
    whenTaken: undefined,
    bodiless: 0,
    leaving: false,
    held: undefined,
    // An exception that reaches uWS ends the process; a failing log must not.
    onError: (error) => {
      try {
        onError(error)
      } catch {}
    },
  }
}

// A turn of the event loop shorter than this only accepted connections; and how many turns to wait for one at most.
const QUIET_MS = 0.2
const MAX_TURNS = 20

/**
 * Resolves right after the event loop has accepted all connections that the kernel had queued. What arrives between
 * that and the closing of the listening socket is reset, on Linux even where another process shares the port, unless
 * net.ipv4.tcp_migrate_req is set. So requests are held meanwhile, and this waits for a short turn.
 */
async function quietTurn(): Promise<void> {
  // The rest of this turn tells nothing: all sockets are polled only between one such point and the next.
  await endOfTurn()
  for (let turns = 0, tookMs = QUIET_MS; turns < MAX_TURNS && tookMs >= QUIET_MS; turns++) {
    const startedAt = performance.now()
    await endOfTurn()
    tookMs = performance.now() - startedAt
  }
}

function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Handles one request. It must not throw: an exception that reaches uWS ends the process. */
function serve(
  handler: Handler,
  shared: Shared,
  name: string,
  res: NativeResponse,
  req: NativeRequest,
): void {
  const exchange = new UwsExchange(res, shared)
  try {
    const method = name === '' ? req.getCaseSensitiveMethod().toUpperCase() : name
    const request = new Request(method, res, req, exchange)
    exchange.isLast = request.misframed
    // The body of a misframed request is unknown.
    if (!request.misframed) attachBody(request, exchange, res)
    if (shared.held === undefined) handle(handler, request, exchange)
    else shared.held.push(() => handle(handler, request, exchange))
  } catch (error) {
    exchange.failed(error)
  }
  exchange.corked = false
}

function handle(handler: Handler, request: Request, exchange: UwsExchange): void {
  try {
    const result = handler(request, exchange)
    if (result !== undefined) result.then(undefined, (error: unknown) => exchange.failed(error))
  } catch (error) {
    exchange.failed(error)
  }
}

/** Called at once, because uWS discards what arrives before onData. */
function attachBody(request: Request, exchange: UwsExchange, res: NativeResponse): void {
  const length = request.header('content-length')
  const chunked = request.header('transfer-encoding') !== ''
  if (!chunked && (length === '' || length === '0')) return
  exchange.incoming = new Body(res, chunked ? -1 : Number(length))
  request.body = exchange.incoming
}

/** Why the core could not listen, which it does not say. */
async function refusal(host: string, port: number): Promise<StartError> {
  const { portProblem } = await import('../../tasks/port.ts')
  const problem = await portProblem(host, port)
  return new StartError(problem ?? `Port ${port} of ${host} was in use a moment ago: start again`)
}

function bind(app: uWS.TemplatedApp, target: { host: string; port: number; exclusive: boolean }) {
  const { host, port, exclusive } = target
  // The core does not check the number.
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new RangeError(`Not a port: ${port}`)
  return new Promise<uWS.us_listen_socket>((resolve, reject) => {
    const bound = (socket: uWS.us_listen_socket | false) => {
      if (socket !== false) return resolve(socket)
      refusal(host, port).then(reject, reject)
    }
    // The core supports this combination, but the types lack it.
    const listen = app.listen as unknown as (
      host: string,
      port: number,
      options: number,
      bound: (socket: uWS.us_listen_socket | false) => void,
    ) => void
    listen.call(app, host, port, exclusive ? EXCLUSIVE : SHARED_PORT, bound)
  })
}
