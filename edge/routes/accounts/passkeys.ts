import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { findCredentialsById } from '../../../sql/accounts/accounts.ts'
import { lockFactors } from '../../../sql/accounts/credentials.ts'
import {
  consumeChallenge,
  deletePasskey,
  insertChallenge,
  insertPasskey,
  listCredentialIds,
  MAX_PASSKEYS,
  PASSKEY_ORDER,
  readPasskeys,
  renamePasskey,
} from '../../../sql/accounts/passkeys.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid, uuidv7 } from '../../../sql/ids.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { answerArray, buildCursorSchema, buildCursorValues } from '../../pipeline/request/lists.ts'
import { count, Timestamp } from '../../pipeline/request/schemas.ts'
import { type Answer, answerJson, type Input, route, type Writes } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { describeDevice } from './devices.ts'
import { enqueueNotice } from './notices.ts'
import { base64url, challengeFields, credentialFields, passkeySignInRoutes } from './passkey-sign-in.ts'
import { checkProof, isFailure, lockCaller, PROOF_DESCRIPTION, PROOF_ERRORS, proofFields } from './proof.ts'
import { buildCreationOptions, createRelyingParty, parseChallenge } from './relying-party.ts'

const Name = z.string().trim().min(1).max(100)

const Passkey = z
  .strictObject({
    id: z.uuid(),
    name: z.string(),
    is_synced: z.boolean().meta({ description: 'True if its authenticator keeps it on several devices' }),
    transports: z.array(z.string()).meta({ examples: [['internal', 'hybrid']] }),
    created_at: Timestamp,
    last_used_at: Timestamp.nullable(),
  })
  .meta({ id: 'Passkey' })

const Options = z.looseObject(challengeFields).meta({
  id: 'PasskeyCreationOptions',
  description: 'Input of `PublicKeyCredential.parseCreationOptionsFromJSON`',
})

const NewPasskey = z
  .strictObject({
    name: Name.optional().meta({ description: 'Default: the browser and its operating system' }),
    credential: z
      .object({
        ...credentialFields,
        response: z.object({
          clientDataJSON: base64url(8000),
          attestationObject: base64url(60_000),
          transports: z
            .array(z.string().regex(/^[a-z-]{1,20}$/))
            .max(10)
            .default([]),
        }),
      })
      .meta({ description: "`toJSON()` of the browser's `PublicKeyCredential`" }),
  })
  .meta({ id: 'PasskeyCreate' })

const Params = z.object({ passkey_id: z.string() })

/** Routes that create, list, rename and delete the passkeys of the caller. */
export const passkeyRoutes = [
  ...passkeySignInRoutes,

  route({
    method: 'post',
    path: '/passkeys/options',
    summary: 'Begin to create a passkey',
    description: `Pass the response to \`navigator.credentials.create\`. It is valid for five minutes. ${PROOF_DESCRIPTION} \
An account can have at most ${MAX_PASSKEYS} passkeys.`,
    body: z.strictObject(proofFields).meta({ id: 'PasskeyBegin' }).default({}),
    response: Options,
    errors: [...PROOF_ERRORS, 'passkey.not_configured'],
    hasCredentials: true,
    needsSession: true,
    whyRepeatable: 'each call creates a new challenge',
    handle: async (input) => {
      const { edge } = input
      const party = createRelyingParty(edge.settings)
      const proof = await checkProof(input, input.body)
      return input.transaction(async (tx) => {
        const identity = await proof.confirm(tx)
        if (isFailure(identity)) return identity
        const challenge = randomBytes(32)
        await tx.run(insertChallenge(challenge, proof.id))
        const passkeys = await tx.any(listCredentialIds(proof.id))
        return buildCreationOptions(edge.settings, party, challenge, { id: proof.id, ...identity, passkeys })
      })
    },
  }),

  route({
    method: 'post',
    path: '/passkeys',
    summary: 'Store a new passkey',
    body: NewPasskey,
    response: Passkey,
    status: 201,
    errors: [
      'account.nobody',
      'passkey.refused',
      'passkey.exists',
      'passkey.limit',
      'passkey.not_configured',
    ],
    sideEffect: true,
    needsSession: true,
    handle: createPasskey,
  }),

  route({
    method: 'get',
    path: '/passkeys',
    summary: 'List the passkeys of the caller, newest first',
    query: z.object({
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(PASSKEY_ORDER),
    }),
    response: z.array(Passkey),
    needsSession: true,
    reads: 'list',
    handle: async ({ query, caller, reader, request }) => {
      const values = [caller.ownerId ?? 0, buildCursorValues(query.cursor), 0, query.limit] as const
      return answerArray((await reader.text(readPasskeys, values))!, request)
    },
  }),

  route({
    method: 'patch',
    path: '/passkeys/:passkey_id',
    summary: 'Rename a passkey of the caller',
    params: Params,
    body: z.strictObject({ name: Name }).meta({ id: 'PasskeyChange' }),
    response: Passkey,
    errors: ['passkey.missing'],
    needsSession: true,
    handle: (input) => {
      const { params, body, caller } = input
      const id = params.passkey_id
      if (!isUuid(id)) throw fail('passkey.missing')
      return input.transaction(async (tx) => {
        const row = await tx.maybeOne(renamePasskey(caller.id, id, body.name))
        if (row === null) throw fail('passkey.missing')
        await tx.run(
          appendAuditEvent(input, 'passkey.renamed', {
            accountId: caller.id,
            data: { passkey: id, name: body.name },
          }),
        )
        return answerJson(row.json)
      })
    },
  }),

  route({
    method: 'delete',
    path: '/passkeys/:passkey_id',
    summary: 'Delete a passkey of the caller',
    description: `Sessions that it has started continue. ${PROOF_DESCRIPTION}`,
    params: Params,
    body: z.strictObject(proofFields).meta({ id: 'PasskeyDelete' }).default({}),
    errors: [...PROOF_ERRORS, 'passkey.missing'],
    needsSession: true,
    handle: async (input) => {
      const { params, caller } = input
      const id = params.passkey_id
      if (!isUuid(id)) throw fail('passkey.missing')
      const proof = await checkProof(input, input.body)
      return input.transaction(async (tx) => {
        // Passkeys are locked before the account, in the order that sign-ins use.
        const { email } = (await tx.maybeOne(findCredentialsById(caller.id))) ?? {}
        if (email !== undefined) await tx.run(lockFactors(email))
        const identity = await proof.confirm(tx)
        if (isFailure(identity)) return identity
        const deleted = await tx.maybeOne(deletePasskey(caller.id, id))
        if (deleted === null) return fail('passkey.missing')
        await enqueueNotice(tx, input, caller.id, 'passkey_deleted', deleted.name)
        await tx.run(
          appendAuditEvent(input, 'passkey.deleted', { accountId: caller.id, data: { passkey: id } }),
        )
        return undefined
      })
    },
  }),
]

type PasskeyJson = z.input<typeof Passkey>
type CreateInput = Input<undefined, undefined, z.output<typeof NewPasskey>, Caller> & Writes<PasskeyJson>

async function createPasskey(input: CreateInput): Promise<Answer<PasskeyJson>> {
  const { caller, edge, request } = input
  const { credential, name } = input.body
  const { response } = credential
  const accountId = caller.ownerId
  if (accountId === null) throw fail('account.nobody')
  const party = createRelyingParty(edge.settings)
  const challenge = parseChallenge(response.clientDataJSON)
  if (challenge === null) throw fail('passkey.refused')
  // Verification reads nothing from the database, so it runs before the transaction, which checks the challenge.
  const verification = {
    kind: 'registration',
    response: credential,
    challenge: challenge.toString('base64url'),
    ...party,
  } as const
  const verified = await edge.passwords.verifyPasskey(verification)
  const device = name ?? (await describeDevice(request.header('user-agent'))) ?? 'Passkey'
  return input.transaction(async (tx) => {
    // A challenge is consumed whether or not the response is valid.
    const isChallengeLive = (await tx.maybeOne(consumeChallenge(challenge, accountId))) !== null
    if (!isChallengeLive || 'refused' in verified) return fail('passkey.refused')
    await lockCaller(tx, caller)
    if ((await tx.any(listCredentialIds(accountId))).length >= MAX_PASSKEYS)
      return fail('passkey.limit', { max: MAX_PASSKEYS })
    const id = uuidv7()
    const { json: text } = await tx.one(
      insertPasskey({
        id,
        accountId,
        name: device,
        transports: response.transports,
        counter: verified.counter,
        isSynced: verified.isSynced,
        credentialId: Buffer.from(verified.id, 'base64url'),
        publicKey: Buffer.from(verified.publicKey),
      }),
    )
    await enqueueNotice(tx, input, accountId, 'passkey_added', device)
    await tx.run(appendAuditEvent(input, 'passkey.added', { accountId, data: { passkey: id, name: device } }))
    return answerJson(text)
  })
}
