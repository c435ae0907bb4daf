import { test } from 'node:test'
import fc from 'fast-check'
import { createTestDatabase } from '../database.ts'
import { createRunOptions, scaleTimeout } from '../runs.ts'
import { clientStep, createRefreshModel, thiefStep } from './refresh-model.ts'

const database = await createTestDatabase()
const CLIENT_COUNT = 4
const THIEF_COUNT = 3

test('replays end sessions and honest clients keep theirs, despite thieves, lost answers and crashes', {
  timeout: scaleTimeout(90_000),
}, async () => {
  const laneSteps = <T>(step: fc.Arbitrary<T>, lanes: number) =>
    fc.array(fc.array(step, { minLength: 5, maxLength: 25 }), { minLength: lanes, maxLength: lanes })
  await fc.assert(
    fc.asyncProperty(
      laneSteps(clientStep, CLIENT_COUNT),
      laneSteps(thiefStep, THIEF_COUNT),
      async (clientLanes, thiefLanes) => {
        await database.query('delete from account')
        const world = await createRefreshModel(database)
        const clients = await Promise.all(clientLanes.map(world.signIn))
        // No thief steals from the last client, so at least one stays honest.
        const victims = clients.slice(0, -1)
        const busy = Promise.all([
          ...clientLanes.map(async (steps, i) => {
            for (const step of steps) await world.run(clients[i]!, step)
          }),
          ...thiefLanes.map(async (steps) => {
            for (const step of steps) await world.steal(victims, step)
          }),
        ])
        await Promise.all([busy, world.watch(busy)])
        await world.check(clients)
      },
    ),
    // The interleaving differs from run to run, so shrinking would find another example.
    { ...createRunOptions(12), endOnFailure: true, includeErrorInReport: true },
  )
})
