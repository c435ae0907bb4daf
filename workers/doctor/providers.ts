import { AI_PROVIDERS, keyName } from '../../tasks/ai/providers.ts'
import { missingForEmail, missingForTelephony } from '../../tasks/comms/settings.ts'
import { reasonOf } from '../../tasks/outage.ts'
import type { Settings } from '../../tasks/settings.ts'
import { verifyServer } from '../providers/comms/email.ts'
import { type Finding, note, ok, problem } from './findings.ts'

/** Whether providers answer to the keys of the settings. Nothing is sent, and nothing costs anything. */

const ANSWER_MS = 10_000

interface Ask {
  readonly what: string
  /** The setting that is wrong when the key is refused. */
  readonly setting: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Statuses of a key that serves, besides success: one that may only send, for example. */
  readonly alsoGood?: readonly number[]
}

async function ask({ what, setting, url, headers, alsoGood = [] }: Ask): Promise<Finding> {
  const { origin } = new URL(url)
  try {
    const signal = AbortSignal.timeout(ANSWER_MS)
    const { ok: isGood, status } = await fetch(url, { headers, redirect: 'manual', signal })
    if (isGood || alsoGood.includes(status)) return ok(what, `${origin} accepts ${setting}`)
    if (status === 401 || status === 403)
      return problem(what, `${origin} refuses ${setting} (status ${status}): replace it`)
    if (status < 500)
      return note(what, `${origin} answers ${status}: whether it accepts ${setting} is not known`)
    return problem(what, `${origin} answers ${status}: try again, or look at its status page`)
  } catch (error) {
    return problem(what, `${origin} can't be reached: ${reasonOf(error)}`)
  }
}

/** Nothing is sent without all settings: a problem if some of them are set. */
const off = (what: string, missing: readonly string[], isBegun: boolean): Finding =>
  (isBegun ? problem : note)(what, `off: ${missing.join(' and ')} not set`)

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

export async function checkMail({ email, dataDir }: Settings): Promise<Finding[]> {
  const missing = missingForEmail(email)
  const findings: Finding[] = []
  if (missing.length > 0) findings.push(off('email', missing, missing.length === 1))
  else if (email.smtpUrl === 'outbox:') findings.push(note('email', `mails are files in ${dataDir}/outbox`))
  else findings.push(await smtp(email.smtpUrl!), ...defaultSender(email))
  if (email.apiKey !== null)
    findings.push(
      await ask({
        what: 'email domains',
        setting: 'EMAIL_PROVIDER_API_KEY',
        url: `${email.apiBaseUrl}/domains`,
        headers: bearer(email.apiKey),
      }),
    )
  return findings
}

/** Servers of others refuse the sender of development. */
const defaultSender = ({ from }: Settings['email']): Finding[] =>
  from.endsWith('@localhost')
    ? [problem('email', `the sender is ${from}: set EMAIL_PROVIDER_FROM_EMAIL`)]
    : []

async function smtp(url: string): Promise<Finding> {
  const { host } = new URL(url)
  try {
    await verifyServer(url)
    return ok('email', `${host} accepts the account`)
  } catch (error) {
    return problem('email', `${host} does not take mail: ${reasonOf(error)}`)
  }
}

export async function checkTelephony({ telephony: settings }: Settings): Promise<Finding[]> {
  const missing = missingForTelephony(settings)
  if (missing.length > 0) return [off('telephony', missing, missing.length < 3)]
  const { accountSid, authToken, apiBaseUrl } = settings
  return [
    await ask({
      what: 'telephony',
      setting: 'TELEPHONY_AUTH_TOKEN',
      url: `${apiBaseUrl}/2010-04-01/Accounts/${accountSid}.json`,
      headers: { authorization: `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}` },
    }),
  ]
}

export async function checkPayments({
  payments: { secretKey, webhookSecrets, apiBaseUrl },
}: Settings): Promise<Finding[]> {
  if (secretKey === undefined) return [note('payments', 'off: PROVIDER_SECRET_KEY not set')]
  const account = await ask({
    what: 'payments',
    setting: 'PROVIDER_SECRET_KEY',
    url: `${apiBaseUrl}/v1/balance`,
    headers: bearer(secretKey),
    // A restricted key that may not read the balance: https://docs.stripe.com/keys#limit-access
    alsoGood: [403],
  })
  if (webhookSecrets.length > 0) return [account]
  return [
    account,
    problem('payments', 'no event of the provider is accepted: PROVIDER_WEBHOOK_SECRET not set'),
  ]
}

export async function checkModels({ ai }: Settings): Promise<Finding[]> {
  if (!ai.enabled) return [note('models', 'off: AI_ENABLED is false')]
  const known = AI_PROVIDERS.filter((provider) => ai.endpoints[provider].apiKey !== null)
  const asked = known.map((provider) => {
    const { apiKey, baseUrl } = ai.endpoints[provider]
    const setting = keyName(provider)
    // https://docs.anthropic.com/en/api/models-list
    const headers =
      provider === 'anthropic' ? { 'x-api-key': apiKey!, 'anthropic-version': '2023-06-01' } : bearer(apiKey!)
    return ask({ what: provider, setting, url: `${baseUrl}/models`, headers })
  })
  const findings = await Promise.all(asked)
  if (known.includes(ai.provider)) return findings
  const text = `agents that name no model can't answer: ${keyName(ai.provider)} not set`
  return [note('models', text), ...findings]
}
