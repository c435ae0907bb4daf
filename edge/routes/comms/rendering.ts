import { readTemplate } from '../../../sql/comms/templates.ts'
import { type Queries, readWithin } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { type RenderedMessage, renderTemplate, type Template } from '../../../tasks/comms/template.ts'
import { failInvalidField, failInvalidInput } from '../../pipeline/request/input.ts'

/** Renders the templates that requests name. */

interface TemplateUse {
  readonly template: string
  readonly variables?: Readonly<Record<string, string>> | undefined
}

/**
 * Renders a message for a channel from the current version of a template.
 * @throws template.missing, or request.invalid for a template of another channel.
 */
export async function renderForChannel(
  tx: Queries,
  channel: Template['channel'],
  { template: name, variables = {} }: TemplateUse,
): Promise<RenderedMessage> {
  const template = requireTemplate(name, await readWithin(tx, readTemplate, [name]))
  if (template.channel !== channel)
    throw failInvalidField('body', 'template', `is for ${template.channel}`, 'custom')
  return fillTemplate(template, variables)
}

/** Parses the JSON text of a template; null means that it does not exist. @throws fail('template.missing') */
export function requireTemplate(name: string, text: string | null): Template {
  if (text === null) throw fail('template.missing', { name })
  return JSON.parse(text) as Template
}

/** Renders a template. @throws request.invalid with all values that are missing, unknown or invalid. */
export function fillTemplate(
  template: Template,
  variables: Readonly<Record<string, string>>,
): RenderedMessage {
  const rendered = renderTemplate(template, variables)
  if (!('problems' in rendered)) return rendered
  throw failInvalidInput(
    rendered.problems.map(({ path, msg }) => ({ loc: ['body', 'variables', ...path], msg, type: 'custom' })),
  )
}
