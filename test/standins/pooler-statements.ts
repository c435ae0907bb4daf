import type { Socket } from 'node:net'
import { type Message, message, textAt } from './pooler-messages.ts'

/** Keeps named statements of the pooler's clients apart. */

/** A client of the pooler. */
export interface Client {
  readonly id: number
  readonly socket: Socket
  readonly said: Message[]
  /** Its named statements: their names at the servers, and the rest of each Parse. */
  readonly statements: Map<string, { readonly name: string; readonly rest: Buffer }>
  server: Server | null
  last: Server | null
  waits: boolean
  /** Answers to Sync or Query that are still due. */
  due: number
  /** True if a Sync must still follow its messages. */
  open: boolean
}

/** A server connection of the pooler. */
export interface Server {
  readonly socket: Socket
  client: Client | null
  resetting: boolean
  readonly known: Set<string>
  /** Parses in progress, grouped by the Sync after them. `own` marks those that the pooler added. */
  batches: { readonly name: string; readonly own: boolean }[][]
}

let prepared = 0

/** Replaces client statement names by server names; first adds a Parse for a statement that this server lacks. */
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
  // In Bind, the portal precedes the name; in Describe and Close, a letter does.
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

/** Handles the answer to a Sync: statements that an error made the server skip are not prepared. */
export function finishBatch(server: Server): void {
  for (const { name } of server.batches.shift()!) server.known.delete(name)
}
