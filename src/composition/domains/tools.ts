import { createToolRegistry, type ToolRegistry } from '../../gateway/tools/registry/create-tool-registry.ts'
import { createUpstreams } from '../../gateway/tools/upstream/upstream.ts'
import { version } from '../../version.ts'
import type { AppParts } from '../parts.ts'

/** Constructs the registry of MCP servers with the client that dials them. */
export function toolServices(parts: AppParts): ToolRegistry {
  const { outbound, clock } = parts
  return createToolRegistry({ ...parts, guard: outbound.guard, upstreams: createUpstreams({ outbound, clock, version }) })
}
