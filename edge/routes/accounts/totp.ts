import { z } from 'zod'
import { findCredentialsById } from '../../../sql/accounts/accounts.ts'
import {
  confirmTotp,
  deleteTotp,
  findTotp,
  insertTotp,
  readTotp,
  setRecoveryCodes,
} from '../../../sql/accounts/totp.ts'
import type { Queries } from '../../../sql/db.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { decideLogin } from '../../../sql/limits/limits.ts'
import { createRecoveryCodes, digestRecoveryCode } from '../../../tasks/accounts/tokens.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { addSealed, revealSealed } from '../../pipeline/answer/sealed-answer.ts'
import { RowId, Timestamp } from '../../pipeline/request/schemas.ts'
import { type Answer, answerJson, type Input, route, type Writes } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { deriveLoginFailureKey } from './known-device.ts'
import { enqueueNotice } from './notices.ts'
import { createTotpSecret, createTotpSetup, findStep, sealTotpSecret } from './one-time-codes.ts'
import {
  checkProof,
  factorFields,
  isFailure,
  lockCaller,
  PROOF_DESCRIPTION,
  PROOF_ERRORS,
  proofFields,
  recordFailedProof,
  TotpCode,
} from './proof.ts'

const Totp = z
  .strictObject({ is_on: z.boolean(), confirmed_at: Timestamp.nullable(), recovery_codes_left: z.int() })
  .meta({ id: 'Totp' })

const EXAMPLE_SECRET = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
const EXAMPLE_URI = `otpauth://totp/millrace:ann%40example.com?issuer=millrace&secret=${EXAMPLE_SECRET}&algorithm=SHA1&digits=6&period=30`
const Setup = z
  .strictObject({
    secret: z.string().meta({ description: 'Base32, for manual entry', examples: [EXAMPLE_SECRET] }),
    uri: z.string().meta({ description: 'Content of the QR code', examples: [EXAMPLE_URI] }),
  })
  .meta({ id: 'TotpSetup' })

const RecoveryCodes = z
  .strictObject({
    recovery_codes: z
      .array(z.string())
      .meta({ description: 'Shown only once; each code works once', examples: [['k3f9-0m2x-7vqa-h8dt']] }),
  })
  .meta({ id: 'RecoveryCodes' })

const BeginRequest = z.strictObject(proofFields).meta({ id: 'TotpBegin' })
const ConfirmRequest = z.strictObject({ code: TotpCode }).meta({ id: 'TotpConfirm' })
const Factor = z
  .strictObject({ ...factorFields, password: z.string().min(1).max(1024) })
  .refine(
    ({ totp_code, recovery_code }) => (totp_code === undefined) !== (recovery_code === undefined),
    'must have totp_code or recovery_code',
  )
  .meta({ id: 'TotpProof' })

const DISABLED_TOTP: z.input<typeof Totp> = { is_on: false, confirmed_at: null, recovery_codes_left: 0 }

/** Routes for one-time codes of an authenticator app (RFC 6238), which are the second factor of an account. */
export const totpRoutes = [
  route({
    method: 'get',
    path: '/totp',
    summary: 'Get the state of one-time codes',
    response: Totp,
    needsSession: true,
    handle: async ({ caller, edge }) => {
      const text = await edge.reader.text(readTotp, [caller.ownerId ?? 0])
      return text === null ? DISABLED_TOTP : answerJson<z.input<typeof Totp>>(text)
    },
  }),

  route({
    method: 'post',
    path: '/totp',
    summary: 'Begin to set up one-time codes',
    description: `Returns the secret for an authenticator app: SHA-1, six digits, 30 seconds (RFC 6238). Nothing changes \
until \`/totp/confirm\` gets a code from the app. ${PROOF_DESCRIPTION}`,
    body: BeginRequest.default({}),
    response: Setup,
    errors: [...PROOF_ERRORS, 'account.totp_on'],
    sideEffect: true,
    hasCredentials: true,
    needsSession: true,
    addUnstored: revealSealed,
    handle: beginSetup,
  }),

  route({
    method: 'post',
    path: '/totp/confirm',
    summary: 'Enable one-time codes with the first code',
    description: `A sign-in with the password then requires a code, and each code is accepted once. Returns ten recovery \
codes, in case the device is lost. API keys and existing sessions continue without codes. Wrong codes count as failed \
logins.`,
    body: ConfirmRequest,
    response: RecoveryCodes,
    errors: ['account.nobody', 'account.totp_unbegun', 'account.totp_on', 'account.totp_code', 'auth.locked'],
    sideEffect: true,
    hasCredentials: true,
    needsSession: true,
    addUnstored: revealSealed,
    handle: confirmSetup,
  }),

  route({
    method: 'post',
    path: '/totp/recovery-codes',
    summary: 'Replace all recovery codes',
    description: 'Requires the password and a code; wrong ones count as failed logins.',
    body: Factor,
    response: RecoveryCodes,
    errors: [...PROOF_ERRORS, 'account.totp_off'],
    sideEffect: true,
    hasCredentials: true,
    needsSession: true,
    addUnstored: revealSealed,
    handle: renewRecoveryCodes,
  }),

  route({
    method: 'delete',
    path: '/totp',
    summary: 'Disable one-time codes',
    description: 'Requires the password and a code; wrong ones count as failed logins.',
    body: Factor,
    errors: [...PROOF_ERRORS, 'account.totp_off'],
    needsSession: true,
    handle: disableTotp,
  }),

  route({
    method: 'delete',
    path: '/users/:user_id/totp',
    summary: 'Disable the one-time codes of an account',
    description: 'For an owner who has lost the device and the recovery codes.',
    auth: 'admin',
    params: z.object({ user_id: RowId }),
    errors: ['account.missing', 'account.totp_off'],
    needsSession: true,
    handle: async (input) => {
      const { user_id: id } = input.params
      return input.transaction(async (tx) => {
        // Locking the account first could deadlock with a sign-in, which locks the codes before the account.
        const isOff = (await tx.maybeOne(deleteTotp(id))) === null
        if (isOff && (await tx.maybeOne(findCredentialsById(id))) === null) throw fail('account.missing')
        if (isOff) throw fail('account.totp_off')
        await enqueueNotice(tx, input, id, 'totp_disabled')
        await tx.run(appendAuditEvent(input, 'account.totp_disabled', { accountId: id }))
        await input.edge.authenticator.invalidate(tx, id)
        return undefined
      })
    },
  }),
]

type WriteInput<B, R> = Input<undefined, undefined, B, Caller> & Writes<R>

async function beginSetup(
  input: WriteInput<z.output<typeof BeginRequest>, z.input<typeof Setup>>,
): Promise<Answer<z.input<typeof Setup>>> {
  const proof = await checkProof(input, input.body)
  return input.transaction(async (tx) => {
    const identity = await proof.confirm(tx)
    if (isFailure(identity)) return identity
    if ((await lockTotp(tx, input.caller))?.is_on === true) return fail('account.totp_on')
    const id = uuidv7()
    const secret = createTotpSecret()
    await tx.run(insertTotp(id, proof.id, sealTotpSecret(input.edge.keys, id, secret)))
    const setup = createTotpSetup(secret, input.edge.settings.projectName, identity.email)
    return answerJson(addSealed(input.edge, '{}', setup))
  })
}

async function confirmSetup(
  input: WriteInput<z.output<typeof ConfirmRequest>, z.input<typeof RecoveryCodes>>,
): Promise<Answer<z.input<typeof RecoveryCodes>>> {
  const { body, caller, edge } = input
  const id = caller.ownerId
  if (id === null) throw fail('account.nobody')
  const { loginMaxFailures, loginLockSeconds } = edge.settings
  return input.transaction(async (tx) => {
    const pending = await requireUnconfirmedTotp(tx.maybeOne(findTotp(id)))
    const account = await tx.maybeOne(findCredentialsById(id))
    if (account === null) throw fail('auth.required')
    const subject = deriveLoginFailureKey(edge, input.request, account.email, { id, ...account })
    const step = findStep(edge, pending, body.code)
    if (step === null) throw fail('account.totp_unbegun')
    // A wrong code counts as a failed login, because a stolen session must not allow unlimited guesses.
    const login = decideLogin(subject, step >= 0, loginMaxFailures, loginLockSeconds)
    const { outcome } = await tx.one(login)
    if (outcome !== 'ok') return recordFailedProof(tx, input, outcome, 'account.totp_code')
    // Sign-ins that have checked only a password wait for this lock, and are then refused.
    const totp = await requireUnconfirmedTotp(lockTotp(tx, caller))
    // The setup has been restarted in the meantime.
    if (totp.id !== pending.id) throw fail('account.totp_code')
    const codes = createRecoveryCodes()
    await tx.run(confirmTotp(totp.id, step, codes.map(digestRecoveryCode)))
    await tx.run(appendAuditEvent(input, 'account.totp_enabled', { accountId: id }))
    await edge.authenticator.invalidate(tx, id)
    return answerJson(addSealed(edge, '{}', { recovery_codes: codes }))
  })
}

/** Returns codes that are set up but not confirmed yet. @throws account.totp_unbegun, account.totp_on */
async function requireUnconfirmedTotp(reading: ReturnType<typeof lockTotp>) {
  const totp = await reading
  if (totp === null) throw fail('account.totp_unbegun')
  if (totp.is_on) throw fail('account.totp_on')
  return totp
}

async function renewRecoveryCodes(
  input: WriteInput<z.output<typeof Factor>, z.input<typeof RecoveryCodes>>,
): Promise<Answer<z.input<typeof RecoveryCodes>>> {
  const { body, edge } = input
  const proof = await checkProof(input, body)
  return input.transaction(async (tx) => {
    const identity = (await findDisabledFailure(tx, proof.id)) ?? (await proof.confirm(tx))
    if (isFailure(identity)) return identity
    const totp = await tx.maybeOne(findTotp(proof.id))
    // An admin has disabled the codes during the check.
    if (totp === null) return fail('account.totp_off')
    const codes = createRecoveryCodes()
    await tx.run(setRecoveryCodes(totp.id, codes.map(digestRecoveryCode)))
    await tx.run(appendAuditEvent(input, 'account.recovery_codes_renewed', { accountId: proof.id }))
    return answerJson(addSealed(edge, '{}', { recovery_codes: codes }))
  })
}

async function disableTotp(
  input: WriteInput<z.output<typeof Factor>, undefined>,
): Promise<Answer<undefined>> {
  const proof = await checkProof(input, input.body)
  return input.transaction(async (tx) => {
    const identity = (await findDisabledFailure(tx, proof.id)) ?? (await proof.confirm(tx))
    if (isFailure(identity)) return identity
    if ((await tx.maybeOne(deleteTotp(proof.id))) === null) return fail('account.totp_off')
    await enqueueNotice(tx, input, proof.id, 'totp_disabled')
    await tx.run(appendAuditEvent(input, 'account.totp_disabled', { accountId: proof.id }))
    await input.edge.authenticator.invalidate(tx, proof.id)
    return undefined
  })
}

/**
 * Returns a failure if the account has no one-time codes; otherwise null. Without this check, a given code would count
 * as wrong.
 */
async function findDisabledFailure(tx: Queries, accountId: number): Promise<Failure | null> {
  return (await tx.maybeOne(findTotp(accountId)))?.is_on === true ? null : fail('account.totp_off')
}

/** Locks the account of the caller, and reads its one-time codes. @throws the errors of {@link lockCaller}. */
async function lockTotp(tx: Queries, caller: Caller) {
  await lockCaller(tx, caller)
  return tx.maybeOne(findTotp(caller.id))
}
