import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import {
  consumeChallenge,
  findPasskey,
  insertChallenge,
  recordPasskeyLogin,
  recordPasskeyUse,
} from '../../../sql/accounts/passkeys.ts'
import { fail } from '../../../sql/errors.ts'
import { type Answer, route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { buildRequestOptions, createRelyingParty, parseChallenge, userHandleOf } from './relying-party.ts'
import { Token } from './shapes.ts'
import { completeSignIn, type SignInInput, type TokenJson } from './sign-in.ts'

/**
 * Sign-in with a passkey. It needs no one-time code, because the authenticator and its PIN or fingerprint are two
 * factors.
 */

const EXAMPLE_CHALLENGE = 'x3kfO9rYQm6bV0tJ5nWcLw2aHsDpEuG7iZq1T8yXo4M'

/** Returns the schema of base64url text of at most `max` characters. */
export const base64url = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[A-Za-z0-9_-]+$/, 'must be base64url')
    .meta({ examples: [EXAMPLE_CHALLENGE] })

/** The one option that the server needs back. Browsers return it in `clientDataJSON`. */
export const challengeFields = { challenge: z.string().meta({ examples: [EXAMPLE_CHALLENGE] }) }

/** Fields that new and existing credentials share. Other fields from browsers are ignored. */
export const credentialFields = {
  // An id has up to 1023 bytes, which are 1364 characters of base64url.
  id: base64url(1364),
  rawId: base64url(1364),
  type: z.literal('public-key'),
}

const Options = z.looseObject(challengeFields).meta({
  id: 'PasskeyRequestOptions',
  description: 'Input of `PublicKeyCredential.parseRequestOptionsFromJSON`',
})

const SignIn = z
  .strictObject({
    credential: z
      .object({
        ...credentialFields,
        response: z.object({
          clientDataJSON: base64url(8000),
          authenticatorData: base64url(8000),
          signature: base64url(8000),
          userHandle: base64url(100),
        }),
      })
      .meta({ description: "`toJSON()` of the browser's `PublicKeyCredential`" }),
  })
  .meta({ id: 'PasskeySignIn' })

export const passkeySignInRoutes = [
  route({
    method: 'post',
    path: '/passkeys/sign-in/options',
    summary: 'Begin a sign-in with a passkey',
    description: 'Pass the response to `navigator.credentials.get`. It is valid for five minutes.',
    auth: 'public',
    response: Options,
    errors: ['passkey.not_configured'],
    hasCredentials: true,
    limit: 'login',
    whyRepeatable: 'each call creates a new challenge',
    handle: (input) => {
      const party = createRelyingParty(input.edge.settings)
      return input.transaction(async (tx) => {
        const challenge = randomBytes(32)
        await tx.run(insertChallenge(challenge, null))
        return buildRequestOptions(party, challenge)
      })
    },
  }),

  route({
    method: 'post',
    path: '/passkeys/sign-in',
    summary: 'Sign in with a passkey',
    description:
      'Responds like a sign-in with a password. It needs no one-time code, and ignores a lock after failed logins.',
    auth: 'public',
    body: SignIn,
    response: Token,
    errors: ['auth.passkey', 'auth.inactive', 'passkey.not_configured'],
    hasCredentials: true,
    signsIn: true,
    limit: 'login',
    whyRepeatable: 'each call starts a new session, with a challenge that works once',
    handle: signIn,
  }),
]

async function signIn(input: SignInInput<z.output<typeof SignIn>>): Promise<Answer<TokenJson>> {
  const { edge } = input
  const { credential } = input.body
  const party = createRelyingParty(edge.settings)
  const challenge = parseChallenge(credential.response.clientDataJSON)
  if (challenge === null) throw fail('auth.passkey')
  const found = await edge.db.maybeOne(findPasskey(Buffer.from(credential.id, 'base64url')))
  const known = found && { id: credential.id, publicKey: found.public_key, counter: found.counter }
  // WebAuthn, section 7.2, step 6 requires the user handle of the credential's owner.
  const ownsCredential = found !== null && credential.response.userHandle === userHandleOf(found.account_id)
  const verification = {
    kind: 'sign-in',
    response: credential,
    challenge: challenge.toString('base64url'),
    ...party,
  } as const
  const answer = ownsCredential
    ? await edge.passwords.verifyPasskey({ ...verification, known: known! })
    : null
  const verified = answer === null || 'refused' in answer ? null : answer
  return input.transaction(async (tx) => {
    // A challenge is consumed whether or not the response is valid.
    const isChallengeLive = (await tx.maybeOne(consumeChallenge(challenge, null))) !== null
    const passkey =
      isChallengeLive && verified !== null
        ? await tx.maybeOne(recordPasskeyUse(found!.id, verified.counter, verified.isSynced))
        : null
    const account = passkey === null ? null : await tx.maybeOne(recordPasskeyLogin(found!.account_id))
    if (account?.is_active === true) {
      const by = { factor: 'passkey', passkey: found!.id }
      return completeSignIn(input, tx, { id: found!.account_id, role: account.role }, by)
    }
    const eventFields = { actorId: null, accountId: found?.account_id ?? null, data: { outcome: 'passkey' } }
    await tx.run(appendAuditEvent(input, 'account.sign_in_failed', eventFields))
    return fail(account === null ? 'auth.passkey' : 'auth.inactive')
  })
}
