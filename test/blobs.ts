import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import type { TestDatabase } from './database.ts'
import { startS3 } from './s3.ts'

/** A prefix that matches no known file type. Random bytes alone may match one by chance. */
export const UNTYPED_PREFIX = Buffer.from([0xfe, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])

/** A kind of blob store, for tests that run against each kind. */
export interface StoreKind {
  readonly name: 'postgres' | 'file' | 's3'
  readonly env: Readonly<Record<string, string>>
  /** Counts the stored items: blobs with chunks, files, or S3 objects and their uploaded parts. */
  count(): Promise<number>
  /** Deletes all stored bytes behind the service's back. */
  deleteAll(): Promise<void>
}

/** Returns an empty store of each kind. The stores are removed after the test file. */
export async function createStoreKinds({ query }: TestDatabase): Promise<readonly StoreKind[]> {
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
      deleteAll: async () => void (await query('delete from blob_chunk')),
    },
    {
      name: 'file',
      env: { BLOB_STORE: `file:${folder}` },
      count: () => Promise.resolve(files().length),
      deleteAll: () => deleteFiles(files()),
    },
    {
      name: 's3',
      env: server.env,
      count: () => Promise.resolve(server.files().length),
      deleteAll: () => deleteFiles(server.files()),
    },
  ]
}

async function deleteFiles(files: readonly string[]): Promise<void> {
  for (const file of files) rmSync(file)
}
