export const keyEndpoints = {}
