import type { Socket } from 'node:net'
import { createMessage, type Message, readTextAt } from './pooler-messages.ts'

/** Translates names of prepared statements, so that clients of the pooler do not share them. */

export interface Client {
  readonly id: number
  readonly socket: Socket
  readonly said: Message[]
  /** Named statements of this client: the name at the servers, and the rest of the Parse message. */
  readonly statements: Map<string, { readonly name: string; readonly rest: Buffer }>
  server: Server | null
  last: Server | null
  waits: boolean
  /** Number of answers to Sync or Query that the servers still owe. */
  due: number
  /** True if the client has sent messages but not yet the Sync after them. */
  open: boolean
}

/** Server connection of the pooler. */
export interface Server {
  readonly socket: Socket
  client: Client | null
  resetting: boolean
  readonly known: Set<string>
  /** Parse messages in progress, grouped by the Sync that follows them. `own` marks those that the pooler added. */
  batches: { readonly name: string; readonly own: boolean }[][]
}

let prepared = 0

/**
 * Replaces the client's statement name by its name at the server. If the server lacks the statement, a Parse message
 * comes first.
 */
export function translateNames(client: Client, server: Server, { type, whole, body }: Message): Buffer {
  const known = (name: string, rest: Buffer, own: boolean): Buffer => {
    server.known.add(name)
    server.batches.at(-1)!.push({ name, own })
    return createMessage('P', `${name}\0`, rest)
  }
  if (type === 'P') {
    const [name, rest] = readTextAt(body)
    if (name === '') return known('', rest, false)
    const given = `${client.id}/${++prepared}`
    client.statements.set(name, { name: given, rest })
    return known(given, rest, false)
  }
  // The name comes after the portal in Bind, and after a letter in Describe and Close.
  const named =
    type === 'B' ? readTextAt(body)[1] : body[0] === 0x53 && 'DC'.includes(type) ? body.subarray(1) : null
  if (named === null) return whole
  const before = body.subarray(0, body.length - named.length)
  const [name, rest] = readTextAt(named)
  const statement = client.statements.get(name)
  if (name === '' || statement === undefined) return whole
  const itself = createMessage(type, before, `${statement.name}\0`, rest)
  if (type === 'C') client.statements.delete(name)
  if (server.known.has(statement.name) || type === 'C') return itself
  return Buffer.concat([known(statement.name, statement.rest, true), itself])
}

/** Handles the answer to a Sync. Forgets the statements that the server skipped because of an error. */
export function finishBatch(server: Server): void {
  for (const { name } of server.batches.shift()!) server.known.delete(name)
}
