import { type Queries, readWithin } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { readTemplate } from '../../../sql/templates.ts'
import { type Rendered, render, type Template } from '../../../tasks/comms/template.ts'
import { invalid, invalidInput } from '../../pipeline/input.ts'

/** Renders the templates that requests name. */

interface TemplateUse {
  readonly template: string
  readonly variables?: Readonly<Record<string, string>> | undefined
}

/**
 * Renders the parts of a message for a channel from its current template.
 * @throws template.missing, or request.invalid for a template of another channel.
 */
export async function renderFor(
  tx: Queries,
  channel: Template['channel'],
  { template: name, variables = {} }: TemplateUse,
): Promise<Rendered> {
  const template = requireTemplate(name, await readWithin(tx, readTemplate, [name]))
  if (template.channel !== channel) throw invalid('body', 'template', `is for ${template.channel}`, 'custom')
  return fillTemplate(template, variables)
}

/** Parses the JSON text of a template; null means that it does not exist. @throws fail('template.missing') */
export function requireTemplate(name: string, text: string | null): Template {
  if (text === null) throw fail('template.missing', { name })
  return JSON.parse(text) as Template
}

/** Renders a template. @throws request.invalid with all values that are missing, unknown or invalid. */
export function fillTemplate(template: Template, variables: Readonly<Record<string, string>>): Rendered {
  const rendered = render(template, variables)
  if (!('problems' in rendered)) return rendered
  throw invalidInput(
    rendered.problems.map(({ path, msg }) => ({ loc: ['body', 'variables', ...path], msg, type: 'custom' })),
  )
}
