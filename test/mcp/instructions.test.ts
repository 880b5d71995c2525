import { expect, test } from 'vitest'
import { mcpIdentity } from '../../src/mcp/documents/instructions.ts'
import { mcpTools } from '../../src/mcp/tools/tools.ts'

const { instructions } = mcpIdentity('brigade', '1.2.3')

test('the instructions are shorter than 2 kB', () => {
  expect(Buffer.byteLength(instructions)).toBeLessThan(2048)
})

test('every tool that the instructions name exists and is in a default toolset', () => {
  const usual = new Set(mcpTools(1).flatMap(tool => (tool.toolset === 'images' ? [] : [tool.name])))
  const named = instructions.match(/\b(?:memory|budget|models|usage)_[a-z]+\b/g) ?? []
  const codes = ['memory_conflict', 'budget_exceeded']
  expect(named.filter(name => !codes.includes(name) && !usual.has(name))).toEqual([])
  expect(named.length).toBeGreaterThan(8)
})
