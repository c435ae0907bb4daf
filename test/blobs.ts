import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import type { TestDatabase } from './database.ts'
import { startS3 } from './s3.ts'

/** What no file of a known type begins with, as random bytes may by chance: alone or before others it is of none. */
export const OF_NO_TYPE = Buffer.from([0xfe, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])

/** One kind of store as tests see it: how it is chosen, what is in it, and how it loses things. */
export interface StoreKind {
  readonly name: 'postgres' | 'file' | 's3'
  readonly env: Readonly<Record<string, string>>
  /** How many files, objects, parts of them or blobs with chunks there are. */
  count(): Promise<number>
  /** Loses the bytes of everything, behind the back of the service. */
  lose(): Promise<void>
}

/** Stores for the database of a test file, new and empty; gone after the file. */
export async function storeKinds({ query }: TestDatabase): Promise<readonly StoreKind[]> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-blobs-'))
  const server = await startS3('/some/prefix')
  after(async () => {
    rmSync(folder, { recursive: true, force: true })
    await server.stop()
  })
  const files = (): string[] =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((file) => join(folder, file))
      .filter((file) => statSync(file).isFile())
  return [
    {
      name: 'postgres',
      env: {},
      count: async () =>
        (await query('select count(distinct blob_id)::int as n from blob_chunk'))[0]!.n as number,
      lose: async () => void (await query('delete from blob_chunk')),
    },
    {
      name: 'file',
      env: { BLOB_STORE: `file:${folder}` },
      count: () => Promise.resolve(files().length),
      lose: () => lose(files()),
    },
    {
      name: 's3',
      env: server.env,
      count: () => Promise.resolve(server.files().length),
      lose: () => lose(server.files()),
    },
  ]
}

async function lose(files: readonly string[]): Promise<void> {
  for (const file of files) rmSync(file)
}
