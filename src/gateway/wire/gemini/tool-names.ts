import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'
import { type ToolNames, toolNamesOf } from '../messages/tool-names.ts'
import { declarationsOf, fieldOf, partsIn, textAt } from './fields.ts'

/** Returns the names of the tools of a request, as `toolNamesOf` does for the messages format: offered functions, and those that earlier turns have called. */
export function geminiToolNames(body: JsonObject): ToolNames {
  const names = new Set(declarationsOf(body).map(({ name }) => name))
  for (const content of objectsOf(body['contents']))
    for (const part of partsIn(content)) {
      const call = fieldOf(part, 'functionCall')
      if (isObject(call)) names.add(textAt(call, 'name'))
    }
  return toolNamesOf({ tools: [...names].map(name => ({ name })) })
}
