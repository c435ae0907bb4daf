import { createDriverFactory, type DriverCommand, type DriverFactory } from '@slonik/driver'
import { type ConnectOptions, type QueryResult, ServerClient, typeParserOf } from './driver.ts'
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
  /** Gets the end of the WAL after each commit, which is asked for in the same message. */
  readonly onCommit?: (position: string) => void
}

// What slonik ends a transaction with.
const COMMIT = 'COMMIT'

/** How slonik's pool reaches PostgreSQL: by the clients that every other connection is. */
export function createPoolDriver(options: PoolDriverOptions): DriverFactory {
  const { onCommit } = options
  return createDriverFactory(async () => ({
    createPoolClient: async ({ clientEventEmitter }) => {
      const client = new ServerClient(options)
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
          const result =
            onCommit !== undefined && text === COMMIT
              ? await commit(client, onCommit)
              : await client.query<Row>({ ...(name && { name }), text, values: values ?? [] })
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

async function commit(client: ServerClient, onCommit: (position: string) => void): Promise<QueryResult<Row>> {
  // One message, whose second statement begins when the commit is done.
  const results = (await client.query(`${COMMIT}; select ${END_OF_WAL} as position`)) as unknown
  const [committed, end] = results as [QueryResult<Row>, QueryResult<{ position: string | null }>]
  const position = end.rows[0]?.position
  if (position) onCommit(position)
  return committed
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
