import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import type { NewAccount } from './accounts.ts'

export interface ImportedAccount extends NewAccount {
  readonly isVerified: boolean
}

/** Adds accounts and skips existing addresses. Inserts in order of address, so that concurrent imports cannot deadlock. */
export const importAccounts = (accounts: readonly ImportedAccount[]): Query<{ id: number; email: string }> =>
  sql.type(z.object({ id: z.number(), email: z.string() }))`
    insert into account (email, password_hash, full_name, role, is_active, is_verified)
    select a."email", a."passwordHash", a."fullName", a."role", a."isActive", a."isVerified"
    from jsonb_to_recordset(${JSON.stringify(accounts)}::jsonb) as a("email" text, "passwordHash" text, "fullName" text,
      "role" text, "isActive" boolean, "isVerified" boolean)
    order by a."email"
    on conflict on constraint account_email_key do nothing returning id, email`
