import { area } from '../pipeline/route.ts'
import { agentRoutes } from './ai/agents.ts'
import { chatRoutes } from './ai/chat.ts'
import { conversationRoutes } from './ai/conversations.ts'
import { sentimentRoutes } from './ai/sentiment.ts'
import { healthRoute, versionRoute } from './ai/status.ts'
import { usageRoutes } from './ai/usage.ts'

export const ai = area('ai', '/api/v1/ai', { auth: 'open', invalidStatus: 400 }, [
  ...chatRoutes,
  ...conversationRoutes,
  ...agentRoutes,
  ...usageRoutes,
  ...sentimentRoutes,
  healthRoute,
])

/** Area of the version route, which is outside the versioned prefix. */
export const aiVersion = area('ai', '/ai', { auth: 'open', invalidStatus: 400 }, [versionRoute])
