import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

/** An OpenID Connect issuer: discovery, keys, authorization code flow with PKCE, tokens with real signatures. */

export interface Person {
  readonly sub: string
  readonly email?: string
  readonly email_verified?: boolean | string
  readonly name?: string
}

/** Deviations of the next answers. */
export interface OidcFaults {
  /** Claims of the ID token that replace the right ones. */
  claims?: Record<string, unknown>
  /** Signs with a key that the issuer does not publish. */
  forged?: boolean
  /** Denies access at the authorization endpoint. */
  denied?: boolean
  /** Answers every request with this status. */
  status?: number
  /** Sends the claims only from the userinfo endpoint. */
  onlyUserInfo?: boolean
}

interface Grant {
  readonly person: Person
  readonly nonce: string
  readonly challenge: string
  readonly redirectUri: string
}

export const CLIENT = { id: 'mill', secret: 'a client secret' }

export async function startOidcIssuer() {
  const [keys, otherKeys] = await Promise.all([generateKeyPair('RS256'), generateKeyPair('RS256')])
  const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }
  const grants = new Map<string, Grant>()
  const people = new Map<string, Person>()
  const state: { person: Person; faults: OidcFaults; calls: string[] } = {
    person: { sub: 'nobody' },
    faults: {},
    calls: [],
  }
  let issuer = ''

  const authorize = (query: URLSearchParams): string => {
    const redirect = new URL(query.get('redirect_uri')!)
    redirect.searchParams.set('state', query.get('state')!)
    redirect.searchParams.set('iss', issuer)
    const isComplete =
      query.get('client_id') === CLIENT.id &&
      query.get('response_type') === 'code' &&
      query.get('code_challenge_method') === 'S256'
    if (!isComplete || state.faults.denied) {
      redirect.searchParams.set('error', isComplete ? 'access_denied' : 'invalid_request')
      return redirect.href
    }
    const code = randomBytes(16).toString('hex')
    grants.set(code, {
      person: state.person,
      nonce: query.get('nonce')!,
      challenge: query.get('code_challenge')!,
      redirectUri: query.get('redirect_uri')!,
    })
    redirect.searchParams.set('code', code)
    return redirect.href
  }

  const exchange = async (request: IncomingMessage, form: URLSearchParams) => {
    const given = request.headers.authorization ?? ''
    const basic = Buffer.from(given.replace('Basic ', ''), 'base64').toString()
    const posted = `${form.get('client_id')}:${form.get('client_secret')}`
    const wanted = `${CLIENT.id}:${CLIENT.secret}`
    if (decodeURIComponent(basic.replaceAll('+', ' ')) !== wanted && posted !== wanted)
      return { status: 401, body: { error: 'invalid_client' } }
    const code = form.get('code') ?? ''
    const grant = grants.get(code)
    grants.delete(code)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (
      grant === undefined ||
      grant.challenge !== challenge ||
      grant.redirectUri !== form.get('redirect_uri')
    )
      return { status: 400, body: { error: 'invalid_grant' } }
    const { sub, ...rest } = grant.person
    const { claims = {}, forged = false, onlyUserInfo = false } = state.faults
    const now = Math.floor(Date.now() / 1000)
    const payload = {
      ...{ iss: issuer, aud: CLIENT.id, sub, nonce: grant.nonce, iat: now, exp: now + 300 },
      ...(onlyUserInfo ? {} : rest),
      ...claims,
    }
    const token = await new SignJWT(payload)
      .setProtectedHeader({ alg: 'RS256', kid: 'one' })
      .sign(forged ? otherKeys.privateKey : keys.privateKey)
    const access = randomBytes(16).toString('hex')
    people.set(access, grant.person)
    return {
      status: 200,
      body: { access_token: access, token_type: 'Bearer', expires_in: 60, id_token: token },
    }
  }

  const server = createServer(async (request, response) => {
    const url = new URL(request.url!, issuer)
    state.calls.push(url.pathname)
    let body = ''
    for await (const chunk of request) body += chunk
    const answer = (status: number, value: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    if (state.faults.status !== undefined) return answer(state.faults.status, { error: 'server_error' })
    if (url.pathname === '/.well-known/openid-configuration')
      return answer(200, {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
        userinfo_endpoint: `${issuer}/me`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
        code_challenge_methods_supported: ['S256'],
        authorization_response_iss_parameter_supported: true,
      })
    if (url.pathname === '/keys') return answer(200, { keys: [jwk] })
    if (url.pathname === '/authorize')
      return response.writeHead(302, { location: authorize(url.searchParams) }).end()
    if (url.pathname === '/me')
      return answer(200, people.get((request.headers.authorization ?? '').replace('Bearer ', '')))
    const { status, body: value } = await exchange(request, new URLSearchParams(body))
    return answer(status, value)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    issuer,
    state,
    /** Signs a person in at the issuer's page. Returns the query with which it redirects. */
    signIn: async (authorizationUrl: string, person: Person): Promise<string> => {
      state.person = person
      const { headers } = await fetch(authorizationUrl, { redirect: 'manual' })
      return new URL(headers.get('location')!).search.slice(1)
    },
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
