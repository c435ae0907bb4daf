import { z } from 'zod'
import { type Query, sql } from '../db.ts'

type Fragment = ReturnType<typeof sql.fragment>

/** Deletes rows whose `expires_at` has passed, the oldest first, and returns their number. The column needs an index. */
export const deleteExpiredRows = (table: Fragment, key: Fragment, batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (
      delete from ${table} where (${key}) in (
        select ${key} from ${table} where expires_at < now() order by expires_at limit ${batch}
        for update skip locked)
      returning 1
    )
    select count(*)::int as count from expired`
