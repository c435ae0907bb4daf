import type { Socket } from 'node:net'
import { type Message, message, textAt } from './pooler-messages.ts'

/** How the pooler keeps the named statements of its clients apart. */

/** One of the pooler's clients. */
export interface Client {
  readonly id: number
  readonly socket: Socket
  readonly said: Message[]
  /** Its named statements: what its name is at the servers, and the rest of its Parse. */
  readonly statements: Map<string, { readonly name: string; readonly rest: Buffer }>
  server: Server | null
  last: Server | null
  waits: boolean
  /** Answers to Sync or Query that are still to come. */
  due: number
  /** Has said something that no Sync has followed yet. */
  open: boolean
}

/** One of its server connections. */
export interface Server {
  readonly socket: Socket
  client: Client | null
  resetting: boolean
  readonly known: Set<string>
  /** The Parses under way, by the Sync that follows them: `own` are not the client's. */
  batches: { readonly name: string; readonly own: boolean }[][]
}

let prepared = 0

/** With the server's names of the client's statements; what this server does not know yet goes before. */
export function translate(client: Client, server: Server, { type, whole, body }: Message): Buffer {
  const known = (name: string, rest: Buffer, own: boolean): Buffer => {
    server.known.add(name)
    server.batches.at(-1)!.push({ name, own })
    return message('P', `${name}\0`, rest)
  }
  if (type === 'P') {
    const [name, rest] = textAt(body)
    if (name === '') return known('', rest, false)
    const given = `${client.id}/${++prepared}`
    client.statements.set(name, { name: given, rest })
    return known(given, rest, false)
  }
  // Bind has its portal before the name, Describe and Close a letter.
  const named =
    type === 'B' ? textAt(body)[1] : body[0] === 0x53 && 'DC'.includes(type) ? body.subarray(1) : null
  if (named === null) return whole
  const before = body.subarray(0, body.length - named.length)
  const [name, rest] = textAt(named)
  const statement = client.statements.get(name)
  if (name === '' || statement === undefined) return whole
  const itself = message(type, before, `${statement.name}\0`, rest)
  if (type === 'C') client.statements.delete(name)
  if (server.known.has(statement.name) || type === 'C') return itself
  return Buffer.concat([known(statement.name, statement.rest, true), itself])
}

/** At the answer to a Sync: what an error made the server skip is not prepared. */
export function settle(server: Server): void {
  for (const { name } of server.batches.shift()!) server.known.delete(name)
}
