import { createServer } from 'node:net'
import { connectSocket } from '../../sql/connections/driver.ts'
import {
  createFatalError,
  createMessage,
  encodeInt32,
  type Message,
  MessageSplitter,
  parseParameters,
} from './pooler-messages.ts'
import { type Client, finishBatch, type Server, translateNames } from './pooler-statements.ts'

/**
 * Pooler in transaction mode, like PgBouncer since 1.21, but stricter. For each transaction, a client gets a different
 * server connection if one is free. The pooler discards the state of the previous session.
 */
export interface Pooler {
  readonly url: string
  /** Number of transactions that ran on another server connection than the client's previous one. */
  readonly moves: number
  /** Breaks all connections, as a restart does. */
  restart(): void
  stop(): Promise<void>
}

export interface PoolerOptions {
  readonly url: string
  /** Number of server connections. */
  readonly size: number
  /**
   * False if the pooler does not translate statement names, like PgBouncer before 1.21. Untranslated names reach
   * arbitrary server connections.
   */
  readonly translatesNames?: boolean
}

// Startup parameters that PgBouncer tracks. PgBouncer rejects all others, unless its settings ignore them.
const TRACKED_PARAMETERS = new Set([
  'user',
  'database',
  'application_name',
  'client_encoding',
  'datestyle',
  'timezone',
])
const SSL_REQUEST = 80_877_103
const SYNCS = new Set(['S', 'Q'])

export async function startPooler({ url, size, translatesNames = true }: PoolerOptions): Promise<Pooler> {
  const clients = new Set<Client>()
  const idle: Server[] = []
  const waiting: Client[] = []
  let servers = 0
  let ids = 0
  let moves = 0

  const listener = createServer((socket) => {
    const client: Client = {
      id: ++ids,
      socket,
      said: [],
      statements: new Map(),
      server: null,
      last: null,
      waits: false,
      due: 0,
      open: false,
    }
    const messages = new MessageSplitter(false)
    clients.add(client)
    socket.on('error', () => {})
    socket.on('close', () => removeClient(client))
    socket.on('data', (chunk) => {
      messages.push(chunk)
      for (let next = messages.next(); next !== null; next = messages.next()) {
        if (next.type === '') messages.lettered = handleStartup(client, next)
        else if (next.type === 'X') return void socket.end()
        else client.said.push(next)
      }
      forward(client)
    })
  })

  /** Handles a startup message. Returns false if the message only requests TLS. */
  function handleStartup({ id, socket }: Client, { body }: Message): boolean {
    if (body.readInt32BE() === SSL_REQUEST) return !socket.write('N') && false
    const unknown = [...parseParameters(body).keys()].find(
      (name) => !TRACKED_PARAMETERS.has(name.toLowerCase()),
    )
    if (unknown !== undefined) socket.end(createFatalError(`unsupported startup parameter: ${unknown}`))
    else
      socket.write(
        Buffer.concat([
          createMessage('R', encodeInt32(0)),
          createMessage('S', 'client_encoding\0UTF8\0'),
          createMessage('K', encodeInt32(-id), encodeInt32(0)),
          createMessage('Z', 'I'),
        ]),
      )
    return true
  }

  /** Forwards a client's messages, if it has a server connection. */
  function forward(client: Client): void {
    if (client.said.length === 0 || client.waits) return
    if (client.server === null) {
      client.waits = true
      waiting.push(client)
      assignServers()
      return
    }
    if (client.server.resetting) return
    for (const said of client.said.splice(0)) {
      client.open = !SYNCS.has(said.type)
      if (!client.open) client.due++
      client.server.socket.write(translatesNames ? translateNames(client, client.server, said) : said.whole)
      if (!client.open) client.server.batches.push([])
    }
  }

  function assignServers(): void {
    while (waiting.length > 0 && idle.length > 0) {
      const client = waiting.shift()!
      const other = idle.findIndex((server) => server !== client.last)
      const [server] = idle.splice(Math.max(other, 0), 1)
      client.waits = false
      client.server = server!
      server!.client = client
      server!.batches = [[]]
      if (server !== client.last) {
        moves++
        server!.resetting = translatesNames
        if (translatesNames) server!.socket.write(createMessage('Q', 'discard all\0'))
      }
      client.last = server!
      forward(client)
    }
    if (waiting.length > 0 && servers < size) {
      servers++
      void open()
    }
  }

  async function open(): Promise<void> {
    const socket = await connectSocket({ url, applicationName: 'pooler' }).catch(() => null)
    if (socket === null) {
      servers--
      for (const client of waiting.splice(0)) client.socket.end(createFatalError('server_login_failed'))
      return
    }
    const server: Server = { socket, client: null, resetting: false, known: new Set(), batches: [] }
    const messages = new MessageSplitter(true)
    socket.on('error', () => {})
    socket.on('close', () => {
      servers--
      const at = idle.indexOf(server)
      if (at !== -1) idle.splice(at, 1)
      server.client?.socket.destroy()
      assignServers()
    })
    socket.on('data', (chunk) => {
      messages.push(chunk)
      for (let next = messages.next(); next !== null; next = messages.next()) handleAnswer(server, next)
    })
    idle.push(server)
    assignServers()
  }

  function handleAnswer(server: Server, { type, whole, body }: Message): void {
    const { client } = server
    if (server.resetting) {
      if (type !== 'Z') return
      server.resetting = false
      server.known.clear()
      if (client === null) release(server)
      else forward(client)
      return
    }
    if (type === '1' && server.batches[0]!.shift()?.own) return
    if (type !== 'Z') return void client?.socket.write(whole)
    finishBatch(server)
    if (client === null) return void server.socket.destroy()
    client.socket.write(whole)
    client.due--
    if (client.due > 0 || client.open || body.toString() !== 'I') return
    client.server = null
    release(server)
    forward(client)
  }

  function release(server: Server): void {
    server.client = null
    idle.push(server)
    assignServers()
  }

  /** Removes a client. If it leaves during a transaction, its server connection closes too. */
  function removeClient(client: Client): void {
    clients.delete(client)
    if (client.waits) waiting.splice(waiting.indexOf(client), 1)
    if (client.server === null) return
    client.server.client = null
    client.server.socket.destroy()
  }

  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const { port } = listener.address() as { port: number }
  const restart = (): void => {
    for (const { socket } of clients) socket.destroy()
    for (const { socket } of idle) socket.destroy()
  }
  return {
    url: `postgresql://anybody@127.0.0.1:${port}${new URL(url).pathname}`,
    get moves() {
      return moves
    },
    restart,
    stop: () => {
      restart()
      return new Promise((resolve) => listener.close(() => resolve()))
    },
  }
}
