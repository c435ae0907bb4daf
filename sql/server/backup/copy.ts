import { pipeline } from 'node:stream/promises'
import { from, to } from 'pg-copy-streams'
import type { Client } from '../../connections/driver.ts'

/** Streams table rows through PostgreSQL's COPY. The only importer of pg-copy-streams. */

/** Yields the output of a COPY statement. @param onRows receives the number of rows after the last byte. */
export async function* copyOut(
  client: Client,
  statement: string,
  onRows: (rows: number) => void,
): AsyncGenerator<Uint8Array> {
  const source = client.query(to(statement))
  yield* source
  onRows(source.rowCount ?? 0)
}

/** Sends data to a COPY statement. Returns the number of rows copied. */
export async function copyIn(
  client: Client,
  statement: string,
  data: AsyncIterable<Uint8Array>,
): Promise<number> {
  const target = client.query(from(statement))
  await pipeline(data, target)
  return target.rowCount ?? 0
}
