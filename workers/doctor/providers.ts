import { AI_PROVIDERS, keySettingName } from '../../tasks/ai/providers.ts'
import { addressOf } from '../../tasks/comms/mailbox.ts'
import { findMissingEmailSettings, findMissingTelephonySettings } from '../../tasks/comms/settings.ts'
import { describeError } from '../../tasks/platform/outage.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { verifyServer } from '../providers/comms/email.ts'
import { listMissingRights } from '../providers/payments/rights.ts'
import { type Finding, note, ok, problem } from './findings.ts'

/** Checks that providers accept the API keys of the settings. The requests send no messages and cost nothing. */

const TIMEOUT_MS = 10_000

interface KeyCheck {
  readonly name: string
  /** The setting to blame if the provider refuses the key. */
  readonly setting: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Statuses that also prove a valid key, e.g. that of a restricted key which may only send. */
  readonly alsoAccepted?: readonly number[]
}

async function checkKey({ name, setting, url, headers, alsoAccepted = [] }: KeyCheck): Promise<Finding> {
  const { origin } = new URL(url)
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const { ok: isSuccess, status } = await fetch(url, { headers, redirect: 'manual', signal })
    if (isSuccess || alsoAccepted.includes(status)) return ok(name, `${origin} accepts ${setting}`)
    if (status === 401 || status === 403)
      return problem(name, `${origin} refuses ${setting} (status ${status}): replace it`)
    if (status < 500)
      return note(name, `${origin} responds with status ${status}: can't tell if ${setting} is valid`)
    return problem(name, `${origin} responds with status ${status}: try again later, or see its status page`)
  } catch (error) {
    return problem(name, `can't reach ${origin}: ${describeError(error)}`)
  }
}

/** Returns the finding for a feature that lacks settings: a problem if some of them are set, else a note. */
const createDisabledFinding = (name: string, missing: readonly string[], isPartlySet: boolean): Finding =>
  (isPartlySet ? problem : note)(name, `disabled: ${missing.join(' and ')} not set`)

const createBearerHeader = (key: string) => ({ authorization: `Bearer ${key}` })

export async function checkMail({ email, dataDir }: Settings): Promise<Finding[]> {
  const missing = findMissingEmailSettings(email)
  const findings: Finding[] = []
  if (missing.length > 0) findings.push(createDisabledFinding('email', missing, missing.length === 1))
  else if (email.smtpUrl === 'outbox:')
    findings.push(note('email', `emails are written to files in ${dataDir}/outbox`))
  else findings.push(await checkSmtp(email.smtpUrl!), ...checkSender(email))
  if (email.apiKey !== null)
    findings.push(
      await checkKey({
        name: 'email domains',
        setting: 'EMAIL_PROVIDER_API_KEY',
        url: `${email.apiBaseUrl}/domains`,
        headers: createBearerHeader(email.apiKey),
      }),
    )
  return findings
}

/** Reports a sender that is still the default of development: mail servers refuse it. */
const checkSender = ({ from }: Settings['email']): Finding[] =>
  addressOf(from).endsWith('@localhost')
    ? [problem('email', `the sender is ${addressOf(from)}: set EMAIL_PROVIDER_FROM_EMAIL`)]
    : []

async function checkSmtp(url: string): Promise<Finding> {
  const { host } = new URL(url)
  try {
    await verifyServer(url)
    return ok('email', `${host} accepts the login`)
  } catch (error) {
    return problem('email', `${host} does not accept mail: ${describeError(error)}`)
  }
}

export async function checkTelephony({ telephony: settings }: Settings): Promise<Finding[]> {
  const missing = findMissingTelephonySettings(settings, settings.smsFrom)
  if (missing.length > 0) return [createDisabledFinding('telephony', missing, missing.length < 3)]
  const { accountSid, authToken, apiBaseUrl } = settings
  return [
    await checkKey({
      name: 'telephony',
      setting: 'TELEPHONY_AUTH_TOKEN',
      url: `${apiBaseUrl}/2010-04-01/Accounts/${accountSid}.json`,
      headers: { authorization: `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}` },
    }),
  ]
}

/** Returns a problem that names the rights which a valid key lacks; none if it has all. Only reads are tried. */
async function checkPaymentRights(settings: Settings['payments']): Promise<Finding[]> {
  try {
    const missing = await listMissingRights(settings)
    if (missing.length === 0) return []
    return [problem('payments', `PROVIDER_SECRET_KEY lacks rights at the provider: ${missing.join(', ')}`)]
  } catch (error) {
    return [problem('payments', `can't tell if PROVIDER_SECRET_KEY has all rights: ${describeError(error)}`)]
  }
}

export async function checkPayments({ payments }: Settings): Promise<Finding[]> {
  const { secretKey, webhookSecrets, apiBaseUrl } = payments
  if (secretKey === undefined) return [note('payments', 'disabled: PROVIDER_SECRET_KEY not set')]
  const account = await checkKey({
    name: 'payments',
    setting: 'PROVIDER_SECRET_KEY',
    url: `${apiBaseUrl}/v1/balance`,
    headers: createBearerHeader(secretKey),
    // The status of a restricted key without permission to read the balance: https://docs.stripe.com/keys#limit-access
    alsoAccepted: [403],
  })
  const rights = account.level === 'ok' ? await checkPaymentRights(payments) : []
  if (webhookSecrets.length > 0) return [account, ...rights]
  return [
    account,
    ...rights,
    problem('payments', 'all events of the provider are rejected: PROVIDER_WEBHOOK_SECRET not set'),
  ]
}

/** Checks that the issuer describes itself under the configured address; the client's credentials are not tried. */
export async function checkIssuer({ oidc }: Settings): Promise<Finding[]> {
  if (oidc === null) return []
  try {
    const url = `${oidc.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    const description: unknown = response.ok ? await response.json() : null
    const issuer = (description as { readonly issuer?: unknown } | null)?.issuer
    if (issuer === oidc.issuer) return [ok('openid', `${oidc.issuer} answers`)]
    const reason = response.ok ? `says that it is ${issuer}` : `responds with status ${response.status}`
    return [problem('openid', `${oidc.issuer} ${reason}: sign-ins through it fail`)]
  } catch (error) {
    return [problem('openid', `can't reach ${oidc.issuer}: ${describeError(error)}`)]
  }
}

export async function checkModels({ ai }: Settings): Promise<Finding[]> {
  if (!ai.enabled) return [note('models', 'disabled: AI_ENABLED is false')]
  const configured = AI_PROVIDERS.filter((provider) => ai.endpoints[provider].apiKey !== null)
  const checks = configured.map((provider) => {
    const { apiKey, baseUrl } = ai.endpoints[provider]
    const setting = keySettingName(provider)
    // https://docs.anthropic.com/en/api/models-list
    const headers =
      provider === 'anthropic'
        ? { 'x-api-key': apiKey!, 'anthropic-version': '2023-06-01' }
        : createBearerHeader(apiKey!)
    return checkKey({ name: provider, setting, url: `${baseUrl}/models`, headers })
  })
  const findings = await Promise.all(checks)
  if (configured.includes(ai.provider)) return findings
  const text = `agents without a model can't answer: ${keySettingName(ai.provider)} not set`
  return [note('models', text), ...findings]
}
