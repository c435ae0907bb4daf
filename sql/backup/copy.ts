import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { from, to } from 'pg-copy-streams'
import type { Client } from '../driver.ts'

/** Rows of a table as PostgreSQL's COPY writes and reads them. The only importer of pg-copy-streams. */

export function copyOut(client: Client, statement: string): Readable {
  return client.query(to(statement))
}

/** Returns the number of rows. */
export async function copyIn(
  client: Client,
  statement: string,
  data: AsyncIterable<Uint8Array>,
): Promise<number> {
  const target = client.query(from(statement))
  await pipeline(data, target)
  return target.rowCount ?? 0
}
