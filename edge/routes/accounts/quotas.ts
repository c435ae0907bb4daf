import { z } from 'zod'
import { readAccount } from '../../../sql/accounts/accounts.ts'
import { readWithin } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { QUOTA_KINDS, QUOTA_NAMES, readQuotas, setQuotas } from '../../../sql/quotas/quotas.ts'
import { RowId } from '../../pipeline/request/schemas.ts'
import { type Answer, answerJson, type Input, route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'

const MAX_QUOTA = Number.MAX_SAFE_INTEGER

const QuotaUse = z
  .strictObject({
    kind: z.enum(QUOTA_NAMES),
    used: z.int(),
    quota: z.int().nullable().meta({ description: 'The limit of the account; null: unlimited' }),
    own: z.int().nullable().meta({
      description: 'The quota that an admin set for this account; 0: unlimited; null: the setting applies',
    }),
    setting: z.string(),
  })
  .meta({ id: 'QuotaUse' })
const QuotaList = z.strictObject({ quotas: z.array(QuotaUse) }).meta({ id: 'QuotaList' })

const NewQuotas = z
  .strictObject(
    Object.fromEntries(
      QUOTA_NAMES.map((kind) => [kind, z.int().min(0).max(MAX_QUOTA).nullable().optional()]),
    ) as Record<(typeof QUOTA_NAMES)[number], z.ZodOptional<z.ZodNullable<z.ZodInt>>>,
  )
  .meta({ id: 'QuotasChange' })

const UserParams = z.object({ user_id: RowId })

const KINDS_TEXT = QUOTA_NAMES.map((kind) => `\`${kind}\` (${QUOTA_KINDS[kind].text})`).join(', ')

/** Answers with the quotas of an account. @throws fail(missing) if there is no such account. */
async function answerQuotas(
  { edge, reader }: Pick<Input<unknown, unknown, unknown, unknown>, 'edge' | 'reader'>,
  accountId: number,
  missing: 'account.nobody' | 'account.missing',
): Promise<Answer<z.input<typeof QuotaList>>> {
  const { quotas } = edge.settings
  const values = [accountId, QUOTA_NAMES, QUOTA_NAMES.map((kind) => quotas[kind])] as const
  const text = await reader.text(readQuotas, values)
  if (text === null) throw fail(missing)
  return answerJson(text)
}

/** Routes for the quotas of accounts, their usage, and the overrides that admins set. */
export const quotaRoutes = [
  route({
    method: 'get',
    path: '/me/quotas',
    summary: 'Get the quotas and usage of the caller',
    description: `The kinds are ${KINDS_TEXT}. A request that would exceed a quota is answered with 429 and the quota in \
\`code\`; a file larger than the whole quota, with 413 and \`quota.file_bytes\`. The job of an extraction fails with \`quota.pages\`. Admins have no \
quotas.`,
    response: QuotaList,
    errors: ['account.nobody'],
    reads: 'statistics',
    // Id 0 stands for no account.
    handle: (input) => answerQuotas(input, input.caller.ownerId ?? 0, 'account.nobody'),
  }),

  route({
    method: 'get',
    path: '/users/:user_id/quotas',
    summary: 'Get the quotas and usage of an account',
    auth: 'admin',
    params: UserParams,
    response: QuotaList,
    errors: ['account.missing'],
    reads: 'statistics',
    handle: (input) => answerQuotas(input, input.params.user_id, 'account.missing'),
  }),

  route({
    method: 'patch',
    path: '/users/:user_id/quotas',
    summary: 'Set the quotas of an account',
    description:
      'Each value overrides the setting; 0 means unlimited, and null restores the setting. Omitted kinds do not change.',
    auth: 'admin',
    params: UserParams,
    body: NewQuotas,
    errors: ['account.missing', 'account.no_fields'],
    handle: (input) => {
      const { params, body } = input
      const id = params.user_id
      if (Object.keys(body).length === 0) throw fail('account.no_fields')
      return input.transaction(async (tx) => {
        if ((await readWithin(tx, readAccount, [id])) === null) throw fail('account.missing')
        await tx.run(setQuotas(id, body))
        await tx.run(appendAuditEvent(input, 'account.quotas_changed', { accountId: id, data: body }))
        return undefined
      })
    },
  }),
]
