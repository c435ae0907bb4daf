import { createDriverFactory, type DriverCommand, type DriverFactory } from '@slonik/driver'
import { type ConnectOptions, ServerClient, typeParserOf } from './driver.ts'

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
      const client = new ServerClient(options)
      setTypeParsers(client)
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
          throw new TypeError('Rows cannot be streamed; read them in pages')
        },
      }
    },
  }))
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
