import { createDriverFactory, type DriverCommand, type DriverFactory } from '@slonik/driver'
import { type ConnectOptions, ServerClient, typeParserOf } from './driver.ts'
import { END_OF_WAL } from './wal.ts'

type Row = Record<string, unknown>

// pg_type.oid of the types that JSON carries as they are wanted, and of their arrays.
const NUMBERS: readonly (readonly [oid: number, array: number])[] = [
  [20, 1016], // int8
  [1700, 1231], // numeric
]
const TEXTS: readonly (readonly [oid: number, array: number])[] = [
  [1184, 1185], // timestamptz
  [1082, 1182], // date
]
const TEXT_ARRAY = 1009

export interface PoolDriverOptions extends ConnectOptions {
  /** Gets the end of the WAL after each commit, single statements among them: it is asked for in the same write. */
  readonly onCommit?: (position: string) => void
}

// What slonik begins and ends a transaction with.
const BEGIN = 'START TRANSACTION'
const COMMIT = 'COMMIT'
const IDLE = 'I'
const END = { name: 'wal_end', text: `select ${END_OF_WAL} as position` }

/** How slonik's pool reaches PostgreSQL: by the clients that every other connection is. */
export function createPoolDriver(options: PoolDriverOptions): DriverFactory {
  const { onCommit } = options
  return createDriverFactory(async () => ({
    createPoolClient: async ({ clientEventEmitter }) => {
      const client = new ServerClient({ ...options, pipeline: onCommit !== undefined })
      useTypes(client)
      // Before slonik has the client, and after it has given it up, nobody listens: an error would be thrown.
      client.on('error', (error) => {
        if (clientEventEmitter.listenerCount('error') > 0) clientEventEmitter.emit('error', error)
      })
      return {
        connect: async () => {
          await client.connect()
        },
        end: () => client.end(),
        query: async (text, values, named) => {
          const name = named?.name
          const send = () => client.query<Row>({ ...(name && { name }), text, values: values ?? [] })
          const commits = text === COMMIT || (client.getTransactionStatus() === IDLE && text !== BEGIN)
          const result =
            onCommit !== undefined && commits ? await withEnd(client, send, onCommit) : await send()
          const fields = result.fields.map(({ dataTypeID, name }) => ({ dataTypeId: dataTypeID, name }))
          return {
            command: result.command as DriverCommand,
            fields,
            rowCount: result.rowCount,
            rows: result.rows,
          }
        },
        stream: () => {
          throw new TypeError('Rows are not streamed: page them')
        },
      }
    },
  }))
}

/** Sends a statement, and after it the question where the WAL ends once it is committed. */
async function withEnd<T>(
  client: ServerClient,
  send: () => Promise<T>,
  onCommit: (position: string) => void,
): Promise<T> {
  client.socket.cork()
  const both = Promise.all([send(), client.query<{ position: string | null }>(END)])
  client.socket.uncork()
  const [result, { rows }] = await both
  if (rows[0]?.position) onCommit(rows[0].position)
  return result
}

function useTypes(client: ServerClient): void {
  const texts = typeParserOf(TEXT_ARRAY as number, 'text') as (text: string) => (string | null)[]
  const number = (text: string | null): number | null => (text === null ? null : Number(text))
  for (const [oid, array] of NUMBERS) {
    client.setTypeParser(oid, Number)
    client.setTypeParser(array, (text: string) => texts(text).map(number))
  }
  for (const [oid, array] of TEXTS) {
    client.setTypeParser(oid, (text: string) => text)
    client.setTypeParser(array, texts)
  }
}
