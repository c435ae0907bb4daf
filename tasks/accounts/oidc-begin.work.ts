import type { TaskContext } from '../context.ts'
import { createOidcRequest } from './oidc.ts'

/** Runs `accounts.oidc-begin`. */
export async function run(
  { providers, keys, signal }: TaskContext,
  { state, redirect_uri }: { readonly state: string; readonly redirect_uri: string },
): Promise<{ authorization_url: string; state: string }> {
  const request = createOidcRequest(keys, state, redirect_uri)
  return { authorization_url: await providers.openId.buildUrl(request, signal), state }
}
