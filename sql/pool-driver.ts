import { createDriverFactory, type DriverCommand, type DriverFactory } from '@slonik/driver'
import { type ConnectOptions, ServerClient, typeParserOf } from './driver.ts'

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

/** How slonik's pool reaches PostgreSQL: by the clients that every other connection is. */
export function createPoolDriver(options: ConnectOptions): DriverFactory {
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
          const result = await client.query<Row>({ ...(name && { name }), text, values: values ?? [] })
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
