// Driver functions for graphs of kernel launches.

#include <stdio.h>
#include <stdlib.h>
#include <algorithm>

#include "entry.h"
#include "launches.h"

using namespace cuda_on_cpu;

namespace {

// Parameters of a kernel node, the struct CUDA_KERNEL_NODE_PARAMS of the driver before CUDA 12.
struct NodeParameters {
    Function *function;
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
    void **arguments, **extra;

    Code prepare_on(Card &card, PreparedLaunch *prepared) const {
        return prepare(card, function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared,
                       arguments, extra, prepared);
    }
};

struct Graph;

struct Node {
    Graph *graph;
    // Index of the node in the graph.
    size_t index;
    PreparedLaunch prepared;
    // Indices of the nodes that must run before this node.
    std::vector<size_t> dependencies;
};

struct Graph {
    Card *card;
    std::vector<std::unique_ptr<Node>> nodes;
};

struct ExecutableGraph {
    Graph *graph;
    Card *card;
    // Launches by the index of their node, and the order in which the launches run.
    std::vector<PreparedLaunch> launches;
    std::vector<size_t> order;
    // Number of queued launches of this graph that have not run yet.
    std::shared_ptr<int> queued = std::make_shared<int>(0);
};

// Graphs that have not been destroyed. A call with another graph or its nodes is an error.
std::set<const Graph *> live_graphs;

// Returns an order in which each node follows its dependencies. Of the nodes that could run next, the
// last one runs first, so that a missing dependency changes the order.
std::vector<size_t> latest_first(const Graph &graph) {
    std::vector<size_t> order;
    const auto contains = [&](size_t index) {
        return std::find(order.begin(), order.end(), index) != order.end();
    };
    while (order.size() < graph.nodes.size()) {
        size_t next = graph.nodes.size();
        for (const auto &node : graph.nodes) {
            const auto &required = node->dependencies;
            const bool is_ready = std::all_of(required.begin(), required.end(), contains);
            if (is_ready && !contains(node->index)) next = node->index;
        }
        order.push_back(next);
    }
    return order;
}

}  // namespace

ENTRY cuGraphCreate(Graph **graph, unsigned flags) {
    REQUIRE_CARD;
    if (flags != 0) return INVALID_VALUE;
    *graph = new Graph{&card, {}};
    live_graphs.insert(*graph);
    return SUCCESS;
}

ENTRY cuGraphDestroy(Graph *graph) {
    REQUIRE_CARD;
    (void)card;
    if (!live_graphs.erase(graph)) return INVALID_VALUE;
    delete graph;
    return SUCCESS;
}

ENTRY cuGraphAddKernelNode(Node **added, Graph *graph, Node *const *dependencies, size_t count,
                           const NodeParameters *parameters) {
    REQUIRE_CARD;
    if (!live_graphs.count(graph) || graph->card != &card) return INVALID_VALUE;
    auto node = std::make_unique<Node>();
    node->graph = graph;
    node->index = graph->nodes.size();
    for (size_t i = 0; i < count; i++) {
        if (dependencies[i]->graph != graph) return INVALID_VALUE;
        node->dependencies.push_back(dependencies[i]->index);
    }
    const Code code = parameters->prepare_on(card, &node->prepared);
    if (code) return code;
    *added = node.get();
    graph->nodes.push_back(std::move(node));
    return SUCCESS;
}

// Drivers before CUDA 11.4 lack this function.
ENTRY cuGraphInstantiateWithFlags(ExecutableGraph **executable, Graph *graph,
                                  unsigned long long flags) {
    REQUIRE_CARD;
    if (driver_version() < 11040) return NOT_FOUND;
    // For tests: a driver that cannot create graphs.
    if (getenv("CUDA_ON_CPU_WITHOUT_GRAPHS")) return NOT_SUPPORTED;
    if (flags != 0 || !live_graphs.count(graph)) return INVALID_VALUE;
    auto created = std::make_unique<ExecutableGraph>();
    created->graph = graph;
    created->card = &card;
    for (const auto &node : graph->nodes) created->launches.push_back(node->prepared);
    created->order = latest_first(*graph);
    *executable = created.release();
    return SUCCESS;
}

// Queued launches of the graph keep their arguments.
ENTRY cuGraphExecKernelNodeSetParams(ExecutableGraph *executable, Node *node,
                                     const NodeParameters *parameters) {
    REQUIRE_CARD;
    if (!live_graphs.count(executable->graph) || node->graph != executable->graph) {
        return INVALID_VALUE;
    }
    PreparedLaunch prepared;
    const Code code = parameters->prepare_on(card, &prepared);
    if (code) return code;
    executable->launches[node->index] = prepared;
    return SUCCESS;
}

ENTRY cuGraphLaunch(ExecutableGraph *executable, void *stream) {
    REQUIRE_CARD;
    auto *queue = static_cast<Queue *>(stream);
    if (executable->card != &card || queue->card != &card) return INVALID_HANDLE;
    ++*executable->queued;
    queue->add([launches = executable->launches, order = executable->order,
                queued = executable->queued]() mutable {
        --*queued;
        for (const size_t index : order) {
            const Code code = launches[index].execute();
            if (code) return code;
        }
        return SUCCESS;
    });
    return SUCCESS;
}

// NVIDIA does not document whether a graph may be destroyed while it runs, so that the simulated
// driver does not allow it.
ENTRY cuGraphExecDestroy(ExecutableGraph *executable) {
    REQUIRE_CARD;
    (void)card;
    if (*executable->queued > 0) {
        fprintf(stderr, "CUDA on the CPU: an executable graph was destroyed before it ran\n");
        abort();
    }
    delete executable;
    return SUCCESS;
}
