import { insertOidcLogin } from '../../sql/accounts/oidc.ts'
import type { TaskContext } from '../context.ts'
import { normalizeAccountAddress } from '../platform/email-address.ts'
import { createOidcRequest } from './oidc.ts'

interface Payload {
  readonly state: string
  readonly redirect_uri: string
  readonly parameters: string
  readonly login_digest: string
}

const MAX_NAME_CHARACTERS = 200

/** Runs `accounts.oidc-exchange`. */
export async function run(
  { providers, runFenced, keys, settings, signal }: TaskContext,
  { state, redirect_uri, parameters, login_digest }: Payload,
): Promise<{ status: 'ready' }> {
  const request = createOidcRequest(keys, state, redirect_uri)
  const { subject, email, isVerified, name } = await providers.openId.exchange(request, parameters, signal)
  const login = {
    digest: Buffer.from(login_digest, 'hex'),
    issuer: settings.oidc!.issuer,
    subject,
    email: isVerified && email !== null ? normalizeAccountAddress(email) : null,
    fullName: name === null ? null : toFullName(name),
  }
  await runFenced((tx) => tx.run(insertOidcLogin(login)))
  return { status: 'ready' }
}

/** Removes what no name of an account has: control characters, and half of a character that the limit cut. */
const toFullName = (name: string): string | null =>
  name
    .trim()
    .slice(0, MAX_NAME_CHARACTERS)
    .replace(/[\s\p{Cc}\p{Cs}]+/gu, ' ')
    .trim() || null
