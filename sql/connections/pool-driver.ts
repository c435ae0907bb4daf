import { createDriverFactory, type DriverCommand, type DriverFactory } from '@slonik/driver'
import {
  type ConnectOptions,
  type QueryConfig,
  type QueryResult,
  ServerClient,
  typeParserOf,
} from './driver.ts'

type Row = Record<string, unknown>

// OIDs from pg_type, each with that of the array type. NUMBER_TYPES are parsed as numbers, TEXT_TYPES stay text.
const NUMBER_TYPES: readonly (readonly [oid: number, array: number])[] = [
  [20, 1016], // int8
  [1700, 1231], // numeric
]
const TEXT_TYPES: readonly (readonly [oid: number, array: number])[] = [
  [1184, 1185], // timestamptz
  [1082, 1182], // date
]
const TEXT_ARRAY = 1009

/** Creates a slonik driver that opens the same kind of client as every other connection of the service. */
export function createPoolDriver(options: ConnectOptions): DriverFactory {
  return createDriverFactory(async () => ({
    createPoolClient: async ({ clientEventEmitter }) => {
      const client = new ServerClient({ ...options, pipeline: true })
      setTypeParsers(client)
      const ask = createAsk(client)
      // slonik listens for errors only while it holds the client. Without a listener, an `error` event would throw.
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
          const result = await ask({ ...(name && { name }), text, values: values ?? [] })
          const fields = result.fields.map(({ dataTypeID, name }) => ({ dataTypeId: dataTypeID, name }))
          return {
            command: result.command as DriverCommand,
            fields,
            rowCount: result.rowCount,
            rows: result.rows,
          }
        },
        stream: () => {
          throw new TypeError('Rows cannot be streamed; read them in pages')
        },
      }
    },
  }))
}

type Ask = (statement: QueryConfig) => Promise<QueryResult<Row>>

// As slonik writes it.
const START_TRANSACTION = 'START TRANSACTION'

/** Returns a function that sends a statement. It sends the start of a transaction together with its first statement. */
function createAsk(client: ServerClient): Ask {
  let mustStart = false
  return async (statement) => {
    if (statement.text === START_TRANSACTION) {
      mustStart = true
      return { command: 'START', fields: [], rowCount: null, rows: [], oid: 0 }
    }
    if (!mustStart) return client.query<Row>(statement)
    mustStart = false
    client.socket.cork()
    const answers = [client.query<Row>(START_TRANSACTION), client.query<Row>(statement)] as const
    client.socket.uncork()
    return (await Promise.all(answers))[1]
  }
}

function setTypeParsers(client: ServerClient): void {
  const texts = typeParserOf(TEXT_ARRAY as number, 'text') as (text: string) => (string | null)[]
  const number = (text: string | null): number | null => (text === null ? null : Number(text))
  for (const [oid, array] of NUMBER_TYPES) {
    client.setTypeParser(oid, Number)
    client.setTypeParser(array, (text: string) => texts(text).map(number))
  }
  for (const [oid, array] of TEXT_TYPES) {
    client.setTypeParser(oid, (text: string) => text)
    client.setTypeParser(array, texts)
  }
}
