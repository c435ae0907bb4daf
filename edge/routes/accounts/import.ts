import { z } from 'zod'
import { type ImportedAccount, importAccounts } from '../../../sql/accounts/import.ts'
import { ROLES } from '../../../sql/accounts/lists.ts'
import { appendAudit } from '../../../sql/audit/audit.ts'
import { AccountAddress } from '../../../tasks/platform/email-address.ts'
import { findHashProblem } from '../../passwords/hashes.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { type Answer, type Input, route, type Writes } from '../../pipeline/route.ts'
import { buildAuditEvent } from '../../pipeline/write/audit.ts'

const MAX_ROWS = 1000

const Row = z
  .strictObject({
    email: AccountAddress,
    password_hash: z
      .string()
      .max(500)
      .superRefine((stored, context) => {
        const problem = findHashProblem(stored)
        if (problem !== null) context.addIssue({ code: 'custom', message: problem })
      })
      .meta({ examples: ['$2b$12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW'] }),
    full_name: z.string().trim().max(200).nullish(),
    role: z.enum(ROLES).default('user'),
    is_active: z.boolean().default(true),
    is_verified: z.boolean().default(false),
  })
  .meta({ id: 'ImportedAccount' })

const Rows = z
  // Any object passes this schema, because each row is validated and answered separately.
  .strictObject({
    accounts: z
      .array(Row.or(z.looseObject({})))
      .min(1)
      .max(MAX_ROWS),
  })
  .meta({ id: 'AccountImport' })

const RowCount = z.int().min(0)
const ImportResult = z
  .strictObject({
    created: RowCount,
    exists: RowCount,
    invalid: RowCount,
    accounts: z.array(
      z.strictObject({
        status: z.enum(['created', 'exists', 'invalid']),
        id: z.int().nullable().meta({ description: 'Id of the created account; null if none was created' }),
        email: z.string().nullable(),
        reason: z
          .string()
          .nullable()
          .meta({ description: 'First problem of the row; null if it is valid', examples: [null] }),
      }),
    ),
  })
  .meta({ id: 'AccountImportResult' })

export const importRoute = route({
  method: 'post',
  path: '/users/import',
  summary: 'Import accounts with existing password hashes',
  description: `Takes up to ${MAX_ROWS} rows and answers each in its position. A row that is invalid, or whose address has an account, \
does not affect the others. Supports hashes of bcrypt (\`$2a$\`, \`$2b$\`, \`$2y$\`, cost 4 to 12), argon2 (\`$argon2id$\`, \`$argon2i$\`, \
\`$argon2d$\`, up to 64 MiB and three passes), scrypt (\`$scrypt$ln=…,r=…,p=…$…\`, up to 32 MiB) and PBKDF2 (\`$pbkdf2-sha256$…\`, \
up to 1,200,000 iterations, \`$pbkdf2-sha512$…\`, up to 600,000; Keycloak's parts as \`$pbkdf2-sha256$i=…$SALT$HASH\`). Supports \
those of Django, WordPress (\`$wp$2y$\`, \`$P$\`), ASP.NET Core Identity and Better Auth within the same limits. A separate thread verifies them, one at a time. The first sign-in replaces a hash by \
argon2id, except a bcrypt hash if the password exceeds the 72 bytes that bcrypt reads. Sends no email.`,
  auth: 'admin',
  body: Rows,
  response: ImportResult,
  sideEffect: true,
  needsSession: true,
  handle: importRows,
})

type Result = z.input<typeof ImportResult>
type ResultRow = Result['accounts'][number]

async function importRows(
  input: Input<undefined, undefined, z.output<typeof Rows>, Caller> & Writes<Result>,
): Promise<Answer<Result>> {
  const rows = input.body.accounts.map((row) => Row.safeParse(row))
  // The first row of an address wins.
  const valid = new Map<string, ImportedAccount>()
  for (const { data } of rows)
    if (data !== undefined && !valid.has(data.email)) valid.set(data.email, toImportedAccount(data))
  return input.transaction(async (tx) => {
    const created = new Map(
      (await tx.any(importAccounts([...valid.values()]))).map(({ email, id }) => [email, id]),
    )
    const events = [...created].map(([email, accountId]) =>
      buildAuditEvent(input, 'account.imported', { accountId, data: { role: valid.get(email)!.role } }),
    )
    await tx.run(appendAudit(events))
    const accounts = rows.map((row): ResultRow => {
      if (!row.success) return { status: 'invalid', id: null, email: null, reason: formatReason(row.error) }
      const { email } = row.data
      const id = created.get(email) ?? null
      // Later rows of the same address report that the account exists.
      created.delete(email)
      return { status: id === null ? 'exists' : 'created', id, email, reason: null }
    })
    const countOf = (status: ResultRow['status']): number =>
      accounts.filter((row) => row.status === status).length
    return { created: countOf('created'), exists: countOf('exists'), invalid: countOf('invalid'), accounts }
  })
}

function toImportedAccount(row: z.output<typeof Row>): ImportedAccount {
  return {
    email: row.email,
    passwordHash: row.password_hash,
    fullName: row.full_name || null,
    role: row.role,
    isActive: row.is_active,
    isVerified: row.is_verified,
  }
}

/** The first problem of a row. */
function formatReason({ issues }: z.ZodError): string {
  const { path, message } = issues[0]!
  return path.length === 0 ? message : `${path.join('.')}: ${message}`
}
