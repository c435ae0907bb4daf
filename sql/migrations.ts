import { readdir } from 'node:fs/promises'

/** Where the migrations are. */
export const MIGRATIONS = new URL('./migrations/', import.meta.url)

/** Their file names, in the order in which they are applied. */
export async function migrationNames(): Promise<string[]> {
  return (await readdir(MIGRATIONS)).filter((name) => /^\d{6}-[a-z0-9-]+\.sql$/.test(name)).sort()
}
