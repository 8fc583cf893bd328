-- Trees of tables made and dropped, strings put together, closures in a queue.
local function tree(depth)
    if depth == 0 then return {} end
    return {tree(depth - 1), tree(depth - 1)}
end
local function count(t) return t[1] and 1 + count(t[1]) + count(t[2]) or 1 end

local kept, total = tree(14), 0
for depth = 4, 14, 2 do
    for _ = 1, 1 << (14 - depth) do total = total + count(tree(depth)) end
end
local words, queue = {}, {}
for line in io.lines(arg[1]) do
    for word in line:gmatch("%a+") do
        local entry = words[word] or {n = 0, places = {}}
        entry.n = entry.n + 1
        entry.places[#entry.places + 1] = word .. entry.n
        words[word] = entry
    end
end
for i = 1, 200000 do
    queue[i] = function() return i end
    if i > 1000 then total, queue[i - 1000] = total + queue[i - 1000](), nil end
end
local names = {}
for word, entry in pairs(words) do names[#names + 1] = word .. ":" .. #table.concat(entry.places) end
table.sort(names)
print(count(kept), total, #names, names[1], names[#names])
