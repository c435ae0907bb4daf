// Passkeys (WebAuthn): whether the browser can use them, and calls that create or use one.

import { ApiError, call, send } from './api.js'

/** Returns why this page cannot use passkeys, as a sentence; null if it can. `ways` are those of `fetchSignInWays`. */
export function findPasskeyProblem(ways) {
  if (!ways.passkeys) return 'Passkeys need a host name. An admin can set one with PUBLIC_BASE_URL.'
  if (!isSecureContext) return 'Passkeys need a secure connection. Open this page at an address that begins with https.'
  if (!('PublicKeyCredential' in globalThis) || !('parseCreationOptionsFromJSON' in PublicKeyCredential)) return 'This browser does not support passkeys. Use a current version of Chrome, Edge, Firefox or Safari.'
  return null
}

const TEXTS = {
  NotAllowedError: 'The device did not confirm. It may have been cancelled, or taken too long. Try again.',
  InvalidStateError: 'This device already has a passkey for your account.',
  SecurityError: 'Passkeys work only at the address for which this service is set up.',
}

/** Runs a call of WebAuthn and explains its failures. */
async function explain(action) {
  try {
    return (await action()).toJSON()
  } catch (error) {
    throw new ApiError(400, { detail: TEXTS[error.name] ?? error.message })
  }
}

/** Creates a passkey on this device and stores it at the service. @throws ApiError */
export async function createPasskey() {
  const options = await call('POST', '/api/v1/auth/passkeys/options', { json: {} })
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
  const credential = await explain(() => navigator.credentials.create({ publicKey }))
  return call('POST', '/api/v1/auth/passkeys', { json: { credential } })
}

/** Signs in with a passkey. @throws ApiError */
export async function signInWithPasskey() {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await post('/api/v1/auth/passkeys/sign-in/options', {}))
  const credential = await explain(() => navigator.credentials.get({ publicKey }))
  await post('/api/v1/auth/passkeys/sign-in', { credential })
}

// A failed sign-in is no ended session, so this cannot use `call`.
async function post(path, json) {
  const response = await send('POST', path, { json })
  const data = await response.json().catch(() => null)
  if (!response.ok) throw new ApiError(response.status, { ...data, requestId: response.headers.get('x-request-id') })
  return data
}
