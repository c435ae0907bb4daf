import { noRows, type Query, sql } from '../db.ts'

/** Stores the rights that the provider's key lacks; writes nothing if they are stored already. */
export const storeMissingRights = (missing: readonly string[]): Query<unknown> =>
  sql.type(noRows)`
    insert into payment_key as k (missing_rights) values (${sql.array([...missing], 'text')})
    on conflict on constraint payment_key_pkey do update set missing_rights = excluded.missing_rights
    where k.missing_rights <> excluded.missing_rights`
