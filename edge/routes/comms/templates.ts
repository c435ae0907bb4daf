import { z } from 'zod'
import {
  deleteTemplate,
  insertTemplate,
  readTemplate,
  readTemplates,
  replaceTemplate,
  TEMPLATE_ORDER,
  type TemplateRow,
} from '../../../sql/comms/templates.ts'
import { fail } from '../../../sql/errors.ts'
import { ACCOUNT_TEMPLATE_NAMES, validateAccountTemplate } from '../../../tasks/accounts/account-templates.ts'
import { countSegments } from '../../../tasks/comms/segments.ts'
import { failInvalidInput } from '../../pipeline/request/input.ts'
import { answerArray, buildCursorSchema } from '../../pipeline/request/lists.ts'
import { count } from '../../pipeline/request/schemas.ts'
import { Answer, answerJson, route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { fillTemplate, requireTemplate } from './rendering.ts'
import { NewTemplate, Preview, PreviewRequest, Template, TemplateChange, TemplateSummary } from './shapes.ts'

const TemplateParams = z.object({ name: z.string() })

const PLACEHOLDER_RULES = `\`{{name}}\` stands for the value of a variable; there is no other syntax. Declare each variable in \
\`variables\`; one without a \`default\` requires a value. Values in \`html\` are escaped.`

/** Routes for message templates, which admins manage and every sender can use. */
export const templateRoutes = [
  route({
    method: 'post',
    path: '/templates',
    auth: 'admin',
    summary: 'Add a template for emails or text messages',
    description: `${PLACEHOLDER_RULES} A template named ${ACCOUNT_TEMPLATE_NAMES.map((name) => `\`${name}\``).join(', ')} \
replaces the text of that email.`,
    body: NewTemplate,
    response: Template,
    status: 201,
    errors: ['template.name_taken'],
    sideEffect: true,
    handle: (input) =>
      input.transaction(async (tx) => {
        const { name, ...fields } = input.body
        requireUsable(name, fields)
        const { json: text } = await tx.one(insertTemplate(name, toTemplateRow(fields)))
        await tx.run(appendAuditEvent(input, 'template.created', { data: { name } }))
        return answerJson(text)
      }),
  }),

  route({
    method: 'get',
    path: '/templates',
    summary: 'List templates by name, without their texts',
    query: z.object({
      limit: count({ min: 1, max: 200, fallback: 50 }),
      cursor: buildCursorSchema(TEMPLATE_ORDER),
    }),
    response: z.array(TemplateSummary),
    reads: 'list',
    handle: async ({ query: { limit, cursor = null }, reader, request }) =>
      answerArray((await reader.text(readTemplates, [cursor, 0, limit]))!, request),
  }),

  route({
    method: 'get',
    path: '/templates/:name',
    summary: 'Get a template',
    params: TemplateParams,
    response: Template,
    errors: ['template.missing'],
    handle: async ({ params: { name }, edge }) => {
      const text = await edge.reader.text(readTemplate, [name])
      if (text === null) throw fail('template.missing', { name })
      return answerJson(text)
    },
  }),

  route({
    method: 'put',
    path: '/templates/:name',
    auth: 'admin',
    summary: 'Replace the contents of a template',
    description: `Messages that were requested before, including scheduled ones, do not change. ${PLACEHOLDER_RULES}`,
    params: TemplateParams,
    body: TemplateChange,
    response: Template,
    errors: ['template.missing'],
    handle: (input) =>
      input.transaction(async (tx) => {
        const { name } = input.params
        requireUsable(name, input.body)
        const replaced = await tx.maybeOne(replaceTemplate(name, toTemplateRow(input.body)))
        if (replaced === null) throw fail('template.missing', { name })
        await tx.run(appendAuditEvent(input, 'template.updated', { data: { name } }))
        return answerJson(replaced.json)
      }),
  }),

  route({
    method: 'delete',
    path: '/templates/:name',
    auth: 'admin',
    summary: 'Delete a template',
    description: 'Messages that were requested before, including scheduled ones, do not change.',
    params: TemplateParams,
    errors: ['template.missing'],
    handle: (input) =>
      input.transaction(async (tx) => {
        const { name } = input.params
        if ((await tx.maybeOne(deleteTemplate(name))) === null) throw fail('template.missing', { name })
        await tx.run(appendAuditEvent(input, 'template.deleted', { data: { name } }))
        return new Answer<undefined>({})
      }),
  }),

  route({
    method: 'post',
    path: '/templates/:name/preview',
    summary: 'Preview a message without sending it',
    params: TemplateParams,
    body: PreviewRequest,
    response: Preview,
    errors: ['template.missing'],
    isRead: true,
    whyRepeatable: 'it only reads',
    handle: async ({ params: { name }, body, edge }) => {
      const template = body.contents ?? requireTemplate(name, await edge.reader.text(readTemplate, [name]))
      const rendered = fillTemplate(template, body.variables)
      const segments = template.channel === 'sms' ? countSegments(rendered.text!).count : null
      return { channel: template.channel, ...rendered, segments }
    },
  }),
]

/** @throws request.invalid if an account email could not use the template under its reserved name. */
function requireUsable(name: string, fields: z.output<typeof TemplateChange>): void {
  const problems = validateAccountTemplate(name, fields)
  if (problems.length > 0)
    throw failInvalidInput(problems.map(({ path, msg }) => ({ loc: ['body', ...path], msg, type: 'custom' })))
}

/** Converts fields to the row of a template, in which absent parts are null. */
function toTemplateRow(fields: z.output<typeof TemplateChange>): TemplateRow {
  const { channel, subject, text, html, variables } = fields
  return { channel, subject: subject ?? null, text: text ?? null, html: html ?? null, variables }
}
