import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/**
 * Sealed texts. Each begins with the 8 characters of its key's id, so that an index finds the texts of a key.
 */

const StoredKey = z.object({ id: z.string(), secret: z.string() })
/** A key that outlives SECRET_KEY, sealed. */
export type StoredKey = z.output<typeof StoredKey>

/** Lists the stored keys, newest first. */
export const listStoredKeys = (): Query<StoredKey> =>
  sql.type(StoredKey)`select id, secret from stored_key order by id desc`

const STORED_KEYS_LOCK = 7_236_501_146

/** Serializes the processes that store a key. */
export const lockStoredKeys = (): Query<unknown> =>
  sql.type(noRows)`select pg_advisory_xact_lock(${STORED_KEYS_LOCK})`

export const insertStoredKey = ({ id, secret }: StoredKey): Query<unknown> =>
  sql.type(noRows)`insert into stored_key (id, secret) values (${id}::uuid, ${secret})`

type Fragment = ReturnType<typeof sql.fragment>

/** A column of sealed texts. Each has an index of `left(text, 8)` and its key, with the condition `where`. */
interface SealedColumn {
  readonly table: string
  /** The sealed text of a row. */
  readonly text: Fragment
  readonly key: string
  readonly keyType: 'uuid' | 'int8' | 'text'
  /** The use for which the text of a row is sealed. */
  readonly use: Fragment
  readonly where: Fragment
  /** Assignment that replaces the text by `new.text`. */
  readonly set: Fragment
}

const defineColumn = (
  [table, column, key]: readonly [table: string, column: string, key: string],
  keyType: SealedColumn['keyType'],
  use: Fragment,
): SealedColumn => {
  const text = sql.identifier([column])
  return {
    ...{ table, key, keyType, use },
    text: sql.fragment`r.${text}`,
    where: sql.fragment`r.${text} is not null`,
    set: sql.fragment`${text} = new.text`,
  }
}

const WEBHOOK_USE = sql.fragment`'webhook:' || coalesce(r.account_id, 0)`

/** All columns of sealed texts. The answers of `idempotency_key` also have some, and expire after a day. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  defineColumn(['stored_key', 'secret', 'id'], 'uuid', sql.fragment`'stored_key:' || r.id`),
  defineColumn(['account_totp', 'secret', 'id'], 'uuid', sql.fragment`'totp:' || r.id`),
  defineColumn(['webhook_endpoint', 'secret', 'id'], 'int8', WEBHOOK_USE),
  defineColumn(['webhook_endpoint', 'previous_secret', 'id'], 'int8', WEBHOOK_USE),
  defineColumn(['worker_queue', 'endpoint_secret', 'name'], 'text', sql.fragment`'worker_queue:' || r.name`),
  defineColumn(['document', 'sealed_password', 'id'], 'int8', sql.fragment`'document:' || r.id`),
  {
    ...{ table: 'job', key: 'id', keyType: 'uuid' },
    text: sql.fragment`r.payload ->> 'sealedPassword'`,
    use: sql.fragment`'document:' || (r.payload ->> 'documentId')`,
    where: sql.fragment`r.name = 'documents.extract' and r.payload ? 'sealedPassword'`,
    set: sql.fragment`payload = jsonb_set(r.payload, '{sealedPassword}', to_jsonb(new.text))`,
  },
]

const TextCount = z.object({ key: z.string(), count: z.number() })

/** Counts the texts of a column by the id of their key. Reads the whole index of the column. */
export const countSealed = ({ table, text, where }: SealedColumn): Query<z.output<typeof TextCount>> =>
  sql.type(TextCount)`
    select left(${text}, 8) as key, count(*)::int as count from ${sql.identifier([table])} r where ${where} group by 1`

const SealedText = z.object({ key: z.string(), use: z.string(), text: z.string() })
export type SealedText = z.output<typeof SealedText>

/** Lists texts of a column that are sealed under a key, after the row with the key `after`; null begins. */
export const listSealed = (
  { table, text, key, keyType, use, where }: SealedColumn,
  secretId: string,
  after: string | null,
  max: number,
): Query<SealedText> => {
  const [id, type] = [sql.identifier([key]), sql.identifier([keyType])]
  const isAfter = after === null ? sql.fragment`true` : sql.fragment`r.${id} > ${after}::${type}`
  return sql.type(SealedText)`
    select r.${id}::text as key, ${use} as use, ${text} as text from ${sql.identifier([table])} r
    where ${where} and left(${text}, 8) = ${secretId} and ${isAfter} order by r.${id} limit ${max}`
}

/** Replaces texts of a column. Keeps a text that has changed since it was read. Returns the number of new texts. */
export const replaceSealed = (
  { table, text, key, keyType, where, set }: SealedColumn,
  changes: readonly { readonly key: string; readonly from: string; readonly to: string }[],
): Query<{ count: number }> => {
  const [name, id] = [sql.identifier([table]), sql.identifier([key])]
  const column = (field: 'key' | 'from' | 'to', type: string) =>
    sql.array(
      changes.map((change) => change[field]),
      type,
    )
  return sql.type(z.object({ count: z.number() }))`
    with new as (
      select * from unnest(${column('key', keyType)}, ${column('from', 'text')}, ${column('to', 'text')}) as n (key, old, text)
    ), locked as (
      -- Locks the rows in the order of their keys.
      select r.${id} as key from ${name} r where r.${id} in (select key from new) order by r.${id} for no key update
    ), changed as (
      update ${name} r set ${set} from new join locked using (key)
      where r.${id} = new.key and ${where} and ${text} = new.old returning 1
    )
    select count(*)::int as count from changed`
}
