import { z } from 'zod'
import { deleteIdentity, IDENTITY_ORDER, readIdentities } from '../../../sql/accounts/oidc.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { answerArray, buildCursorSchema, buildCursorValues } from '../../pipeline/request/lists.ts'
import { count, Timestamp } from '../../pipeline/request/schemas.ts'
import { route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { enqueueNotice } from './notices.ts'
import { checkProof, isFailure, PROOF_DESCRIPTION, PROOF_ERRORS, proofFields } from './proof.ts'

const Identity = z
  .strictObject({
    id: z.uuid(),
    issuer: z.string().meta({ examples: ['https://id.example.com'] }),
    email: z.string().nullable().meta({ description: 'Address at the issuer' }),
    created_at: Timestamp,
    last_used_at: Timestamp.nullable(),
  })
  .meta({ id: 'Identity' })

/** Routes for the identities at an OpenID Connect issuer that sign in to the account of the caller. */
export const identityRoutes = [
  route({
    method: 'get',
    path: '/me/identities',
    summary: 'List the linked identities of the caller, newest first',
    query: z.object({
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(IDENTITY_ORDER),
    }),
    response: z.array(Identity),
    needsSession: true,
    reads: 'list',
    handle: async ({ query, caller, reader, request }) => {
      const values = [caller.ownerId ?? 0, buildCursorValues(query.cursor), 0, query.limit] as const
      return answerArray((await reader.text(readIdentities, values))!, request)
    },
  }),

  route({
    method: 'delete',
    path: '/me/identities/:identity_id',
    summary: 'Unlink an identity of the caller',
    description: `Sessions that it has started continue. A later sign-in with it links it again if the issuer has verified the \
address of the account. ${PROOF_DESCRIPTION}`,
    params: z.object({ identity_id: z.string() }),
    body: z.strictObject(proofFields).meta({ id: 'IdentityDelete' }).default({}),
    errors: [...PROOF_ERRORS, 'identity.missing'],
    needsSession: true,
    handle: async (input) => {
      const { params, caller } = input
      const id = params.identity_id
      if (!isUuid(id)) throw fail('identity.missing')
      const proof = await checkProof(input, input.body)
      return input.transaction(async (tx) => {
        const identity = await proof.confirm(tx)
        if (isFailure(identity)) return identity
        const deleted = await tx.maybeOne(deleteIdentity(caller.id, id))
        if (deleted === null) return fail('identity.missing')
        const { issuer } = deleted
        await enqueueNotice(tx, input, caller.id, 'identity_unlinked', issuer)
        const data = { identity: id, issuer }
        await tx.run(appendAuditEvent(input, 'identity.unlinked', { accountId: caller.id, data }))
        return undefined
      })
    },
  }),
]
