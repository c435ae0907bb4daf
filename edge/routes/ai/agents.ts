import { z } from 'zod'
import { readAgent, readAgents, updateAgent } from '../../../sql/ai/conversations.ts'
import { fail } from '../../../sql/errors.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { Agent, AgentChanges } from './shapes.ts'

/** Routes for the agents that answer chats. */
export const agentRoutes = [
  route({
    method: 'get',
    path: '/agents',
    summary: 'List agents',
    description: `Returns at most 1000 agents, ordered by slug. A null model_id stands for the current model. An agent \
without its own temperature or max_tokens uses those of the settings.`,
    response: z.array(Agent),
    handle: async ({ edge }) => {
      const { temperature, maxTokens } = edge.settings.ai
      return answerJson((await edge.reader.text(readAgents, [temperature, maxTokens]))!)
    },
  }),

  route({
    method: 'patch',
    path: '/agents/:slug',
    summary: 'Update an agent',
    description: `Changes only the given fields, in every process from the next turn on. model_id names a model of the \
current provider, or one of another provider with a prefix, such as \`anthropic/claude-haiku-4-5\`. null stands for the \
current model. fallback_model_id names the model that answers if the provider of the first one fails before any text; null \
stands for AI_FALLBACK_MODEL.`,
    auth: 'operator',
    params: z.object({ slug: z.string() }),
    body: AgentChanges,
    response: Agent,
    errors: ['agent.missing', 'agent.no_fields'],
    handle: async ({ params: { slug }, body, edge }) => {
      if (Object.keys(body).length === 0) throw fail('agent.no_fields')
      if ((await edge.db.maybeOne(updateAgent(slug, body))) === null) throw fail('agent.missing')
      const { temperature, maxTokens } = edge.settings.ai
      return answerJson((await edge.reader.text(readAgent, [temperature, maxTokens, slug]))!)
    },
  }),
]
