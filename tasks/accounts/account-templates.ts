import {
  placeholderNamesOf,
  type RenderedMessage,
  renderTemplate,
  type Template,
  type TemplateProblem,
} from '../comms/template.ts'

/**
 * Templates that replace the built-in texts of account emails. Admins store them under reserved names. The service
 * passes the values, so a template may declare only the variables of its email.
 */

const RESERVED_PREFIX = 'account.'

/** Variables of each email. One of `required`, if any, must appear in every body: without it, the email is useless. */
const ACCOUNT_TEMPLATES = {
  'account.verify': { variables: ['name', 'email', 'link', 'token', 'hours'], required: ['link', 'token'] },
  'account.reset': { variables: ['name', 'email', 'link', 'token', 'minutes'], required: ['link', 'token'] },
  'account.magic-link': {
    variables: ['name', 'email', 'link', 'token', 'minutes'],
    required: ['link', 'token'],
  },
  'account.email-change-old': {
    variables: ['name', 'new_email', 'link', 'refuse_link', 'token', 'hours'],
    required: ['link', 'token'],
  },
  'account.email-change-new': { variables: ['email', 'link', 'token', 'hours'], required: ['link', 'token'] },
  'account.email-in-use': { variables: ['email'], required: [] },
  'account.invite': {
    variables: ['organization', 'invited_by', 'role', 'email', 'link', 'token', 'days'],
    required: ['link', 'token'],
  },
  'account.member-added': { variables: ['organization', 'invited_by', 'role', 'email'], required: [] },
  'account.notice': { variables: ['name', 'email', 'event', 'credential'], required: ['event'] },
  'account.deletion': { variables: ['name', 'email', 'at'], required: ['at'] },
  'account.deletion-forced': {
    variables: ['name', 'account_id', 'subscriptions'],
    required: ['account_id'],
  },
  'account.webhook-disabled': {
    variables: ['name', 'endpoint_id', 'url', 'since'],
    required: ['endpoint_id', 'url'],
  },
} as const satisfies Record<string, { variables: readonly string[]; required: readonly string[] }>

const SECRET_VARIABLES = ['link', 'refuse_link', 'token']

export type AccountTemplate = keyof typeof ACCOUNT_TEMPLATES

export const ACCOUNT_TEMPLATE_NAMES = Object.keys(ACCOUNT_TEMPLATES) as readonly AccountTemplate[]

/** The values of an email's variables. A null value means that it has none, so the template's default applies. */
export type TemplateValues<T extends AccountTemplate> = Readonly<
  Record<(typeof ACCOUNT_TEMPLATES)[T]['variables'][number], string | number | null>
>

/** Returns the problems of a template under a reserved name; none for other names. */
export function validateAccountTemplate(name: string, template: Template): readonly TemplateProblem[] {
  if (!name.startsWith(RESERVED_PREFIX)) return []
  if (!Object.hasOwn(ACCOUNT_TEMPLATES, name))
    return [
      {
        path: ['name'],
        msg: `must be one of ${ACCOUNT_TEMPLATE_NAMES.join(', ')}, or not begin with account.`,
      },
    ]
  const { variables, required }: { variables: readonly string[]; required: readonly string[] } =
    ACCOUNT_TEMPLATES[name as AccountTemplate]
  if (template.channel !== 'email') return [{ path: ['channel'], msg: `must be email for ${name}` }]
  const problems: TemplateProblem[] = []
  for (const [index, variable] of template.variables.entries())
    if (!variables.includes(variable.name))
      problems.push({ path: ['variables', index, 'name'], msg: `must be one of ${variables.join(', ')}` })
  for (const part of ['text', 'html'] as const) {
    const used = placeholderNamesOf(template[part] ?? '')
    if (template[part] != null && required.length > 0 && !required.some((one) => used.has(one)))
      problems.push({ path: [part], msg: `must use ${required.map((one) => `{{${one}}}`).join(' or ')}` })
  }
  // The ledger of messages stores the subject until the email is sent.
  for (const secret of SECRET_VARIABLES)
    if (placeholderNamesOf(template.subject ?? '').has(secret))
      problems.push({ path: ['subject'], msg: `must not use {{${secret}}}` })
  return problems
}

/** Renders a stored template with the values that it declares. */
export function renderAccountTemplate(
  template: Template,
  values: Readonly<Record<string, string | number | null>>,
): RenderedMessage | { readonly problems: readonly TemplateProblem[] } {
  const given = template.variables.flatMap(({ name, default: fallback }) => {
    const value = values[name] ?? fallback ?? ''
    return [[name, String(value)]]
  })
  return renderTemplate(template, Object.fromEntries(given))
}
