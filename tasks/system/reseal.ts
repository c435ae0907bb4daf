import type { Database } from '../../sql/db.ts'
import {
  countSealed,
  listSealed,
  replaceSealed,
  SEALED_COLUMNS,
  type SealedText,
} from '../../sql/system/sealed.ts'
import type { SecretKeys } from '../platform/keys.ts'

/** Seals stored texts under the current key that previous keys have sealed. */

// Each batch is a statement of its own, so it holds its row locks for milliseconds.
const BATCH_SIZE = 500

export interface ResealOptions {
  readonly signal: AbortSignal
  /** Called after each batch with the table and the number of texts so far. */
  readonly onProgress: (table: string, renewed: number) => void
}

/**
 * Seals all texts under the current key that a previous one has sealed. Texts that change meanwhile keep their change. A
 * later call finds only texts that are left, so it continues where an interrupted one stopped. Concurrent calls do not
 * disturb each other.
 *
 * @returns the number of renewed texts, and of those that still need a previous key
 */
export async function reseal(
  db: Database,
  keys: SecretKeys,
  { signal, onProgress }: ResealOptions,
): Promise<{ renewed: number; left: number }> {
  const counts = { renewed: 0, left: 0 }
  for (const secretId of keys.previousIds)
    for (const column of SEALED_COLUMNS) {
      let after: string | null = null
      for (let size = BATCH_SIZE; size === BATCH_SIZE; ) {
        signal.throwIfAborted()
        const texts: readonly SealedText[] = await db.any(listSealed(column, secretId, after, BATCH_SIZE))
        size = texts.length
        after = texts.at(-1)?.key ?? null
        const changes = texts.flatMap(({ key, use, text }) => {
          const secret = keys.unseal(use, text)
          return secret === null ? [] : [{ key, from: text, to: keys.seal(use, secret) }]
        })
        const count = changes.length === 0 ? 0 : (await db.one(replaceSealed(column, changes))).count
        counts.renewed += count
        counts.left += size - count
        if (size > 0) onProgress(column.table, counts.renewed)
      }
    }
  return counts
}

/** Numbers of stored texts by the key that opens them. */
export interface SealedCounts {
  readonly current: number
  readonly previous: number
  /** No key of the process opens these. */
  readonly unknown: number
}

/** Counts the sealed texts. Reads whole indexes, so it is for operators. */
export async function countSealedTexts(
  db: Database,
  { currentId, previousIds }: Pick<SecretKeys, 'currentId' | 'previousIds'>,
): Promise<SealedCounts> {
  const counts = { current: 0, previous: 0, unknown: 0 }
  for (const column of SEALED_COLUMNS)
    for (const { key, count } of await db.any(countSealed(column)))
      counts[key === currentId ? 'current' : previousIds.includes(key) ? 'previous' : 'unknown'] += count
  return counts
}
